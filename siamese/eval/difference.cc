#include "siamese/eval/difference.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "siamese/eval/held_out.h"
#include "siamese/eval/inputs.h"
#include "siamese/ops/operand.h"

namespace siamese::eval {

Difference difference(const models::LanguageModel& before, const models::LanguageModel& after,
                      const data::Batches& source, int64_t rows, int64_t samples) {
  const c10::NoGradGuard no_grad;
  const ops::RoundWeightsOnce rounded;
  if (source.samples() > 0) samples = std::min(samples, source.samples());
  at::Tensor largest = at::zeros({}, at::kDouble);
  for (int64_t first = 0; first < samples; first += rows) {
    const data::Batch batch = source.batch(static_cast<uint64_t>(first), std::min(rows, samples - first));
    const at::Tensor tokens = to_inputs(batch).tokens.narrow(1, 0, batch.shape.context);
    const at::Tensor apart = before.logits(before.hidden(tokens)) - after.logits(after.hidden(tokens));
    largest = at::maximum(largest, apart.abs().max().to(at::kCPU, at::kDouble));  // a NaN stays one
  }
  return {largest.item<double>(), held_out_loss(before, source, rows, samples).loss,
          held_out_loss(after, source, rows, samples).loss};
}

}  // namespace siamese::eval
