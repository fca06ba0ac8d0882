#include "siamese/eval/held_out.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "siamese/eval/inputs.h"
#include "siamese/eval/passes.h"
#include "siamese/ops/operand.h"
#include "siamese/ops/reduce.h"

namespace siamese::eval {

HeldOut held_out_loss(const models::Model& model, const data::Batches& source, int64_t rows, int64_t samples,
                      Baseline* baseline, comm::Group* group) {
  const c10::NoGradGuard no_grad;
  const ops::RoundWeightsOnce rounded;
  if (source.samples() > 0) samples = std::min(samples, source.samples());
  HeldOut result;
  Passes passes(group);
  for (int64_t first = 0; first < samples; first += rows) {
    const data::Batch batch = source.batch(static_cast<uint64_t>(first), std::min(rows, samples - first));
    if (baseline != nullptr) baseline->add(batch);
    result.targets += total_weight(batch);
    if (!passes.next_is_mine()) continue;
    const models::Losses losses = model.losses(to_inputs(batch), {});
    std::vector<at::Tensor> terms = {losses.loss};
    for (const auto& term : losses.extra) terms.push_back(term.second);
    passes.set(ops::read_numbers(terms));
    if (!batch.shape.is_image() || !result.terms.empty()) continue;
    for (const auto& term : losses.extra) result.terms.emplace_back(term.first, 0.0);
  }
  double sum = 0;
  for (const std::vector<double>& numbers : passes.all()) {
    sum += numbers[0];
    for (size_t i = 0; i < result.terms.size(); ++i) result.terms[i].second += numbers[i + 1];
  }
  for (auto& term : result.terms) term.second /= result.targets;
  result.loss = result.targets > 0 ? sum / result.targets : std::numeric_limits<double>::quiet_NaN();
  result.perplexity = std::exp(result.loss);
  return result;
}

}  // namespace siamese::eval
