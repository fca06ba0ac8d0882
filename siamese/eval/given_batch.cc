#include "siamese/eval/given_batch.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "siamese/eval/inputs.h"
#include "siamese/models/dit.h"

namespace siamese::eval {

GivenBatch::GivenBatch(const models::Model& model, const data::Batch& batch)
    : inputs(to_inputs(batch)), weight(total_weight(batch)), given(inputs) {
  if (is_text()) {
    const int64_t count = inputs.tokens.size(1) - 1;  // tokens that have a next one
    given.tokens = inputs.tokens.narrow(1, 0, count);
    answers = inputs.tokens.narrow(1, 1, count);
    counted = inputs.weights.reshape({-1}).gt(0).nonzero().reshape({-1});
    return;
  }
  answers = inputs.labels;
  const auto* const dit = dynamic_cast<const models::DiffusionTransformer*>(&model);
  if (dit == nullptr) return;
  const models::NoisedImages drawn = models::draw_noised(dit->diffusion(), inputs.images, inputs.first_position, 0);
  given.images = drawn.noised;
  given.timesteps = drawn.timesteps;
  answers = drawn.noise;
}

at::Tensor thinned(const at::Tensor& indices, int64_t most) {
  const int64_t all = indices.size(0);
  if (all <= most) return indices;
  std::vector<int64_t> places;
  for (int64_t i = 0; i < most; ++i) places.push_back(i * all / most);
  return indices.index_select(0, at::tensor(places, at::kLong));
}

}  // namespace siamese::eval
