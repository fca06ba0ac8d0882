#include "siamese/eval/difference.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "siamese/eval/held_out.h"
#include "siamese/eval/inputs.h"

namespace siamese::eval {

Difference difference(const models::LanguageModel& before, const models::LanguageModel& after,
                      const data::Dataset& dataset, int64_t context, int64_t rows, int64_t samples) {
  const c10::NoGradGuard no_grad;
  if (dataset.samples() > 0) samples = std::min(samples, dataset.samples());
  at::Tensor largest = at::zeros({}, at::kDouble);
  for (int64_t first = 0; first < samples; first += rows) {
    const data::Batch batch =
        data::make_batch(dataset, context, std::min(rows, samples - first), static_cast<uint64_t>(first));
    const at::Tensor tokens = to_inputs(batch).tokens.narrow(1, 0, context);
    const at::Tensor apart = before.logits(before.hidden(tokens)) - after.logits(after.hidden(tokens));
    largest = at::maximum(largest, apart.abs().max().to(at::kDouble));  // a NaN stays one
  }
  return {largest.item<double>(), held_out_loss(before, dataset, context, rows, samples).loss,
          held_out_loss(after, dataset, context, rows, samples).loss};
}

}  // namespace siamese::eval
