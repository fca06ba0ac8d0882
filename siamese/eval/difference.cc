#include "siamese/eval/difference.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "siamese/base/check.h"
#include "siamese/eval/held_out.h"
#include "siamese/eval/inputs.h"
#include "siamese/models/lm.h"
#include "siamese/models/vit.h"
#include "siamese/ops/operand.h"

namespace siamese::eval {
namespace {

at::Tensor logits_of(const models::Model& model, const models::Inputs& inputs) {
  if (const auto* const lm = dynamic_cast<const models::LanguageModel*>(&model)) {
    return lm->logits(lm->hidden(inputs.tokens.narrow(1, 0, inputs.tokens.size(1) - 1)));
  }
  if (const auto* const vit = dynamic_cast<const models::VisionTransformer*>(&model)) {
    return vit->logits(vit->features(inputs.images));
  }
  throw UsageError("difference: expected models with logits: lm, moe or vit");
}

}  // namespace

Difference difference(const models::Model& before, const models::Model& after, const data::Batches& source,
                      int64_t rows, int64_t samples) {
  const c10::NoGradGuard no_grad;
  const ops::RoundWeightsOnce rounded;
  if (source.samples() > 0) samples = std::min(samples, source.samples());
  at::Tensor largest = at::zeros({}, at::kDouble);
  for (int64_t first = 0; first < samples; first += rows) {
    const auto inputs = to_inputs(source.batch(static_cast<uint64_t>(first), std::min(rows, samples - first)));
    const at::Tensor apart = logits_of(before, inputs) - logits_of(after, inputs);
    largest = at::maximum(largest, apart.abs().max().to(at::kCPU, at::kDouble));  // a NaN stays one
  }
  return {largest.item<double>(), held_out_loss(before, source, rows, samples).loss,
          held_out_loss(after, source, rows, samples).loss};
}

}  // namespace siamese::eval
