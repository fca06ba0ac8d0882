#include "siamese/eval/held_out.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "siamese/eval/inputs.h"
#include "siamese/ops/operand.h"
#include "siamese/ops/reduce.h"

namespace siamese::eval {

HeldOut held_out_loss(const models::Model& model, const data::Batches& source, int64_t rows, int64_t samples,
                      Baseline* baseline) {
  const c10::NoGradGuard no_grad;
  const ops::RoundWeightsOnce rounded;
  if (source.samples() > 0) samples = std::min(samples, source.samples());
  HeldOut result;
  double sum = 0;
  for (int64_t first = 0; first < samples; first += rows) {
    const data::Batch batch = source.batch(static_cast<uint64_t>(first), std::min(rows, samples - first));
    if (baseline != nullptr) baseline->add(batch);
    const models::Losses losses = model.losses(to_inputs(batch), {});
    std::vector<at::Tensor> terms = {losses.loss};
    for (const auto& term : losses.extra) terms.push_back(term.second);
    const std::vector<double> numbers = ops::read_numbers(terms);
    sum += numbers[0];
    result.targets += total_weight(batch);
    for (size_t i = 0; batch.shape.is_image() && i < losses.extra.size(); ++i) {
      if (first == 0) result.terms.emplace_back(losses.extra[i].first, 0.0);
      result.terms[i].second += numbers[i + 1];
    }
  }
  for (auto& term : result.terms) term.second /= result.targets;
  result.loss = result.targets > 0 ? sum / result.targets : std::numeric_limits<double>::quiet_NaN();
  result.perplexity = std::exp(result.loss);
  return result;
}

}  // namespace siamese::eval
