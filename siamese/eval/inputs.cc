#include "siamese/eval/inputs.h"

#include <cstring>
#include <numeric>

#include <ATen/ATen.h>

namespace siamese::eval {

models::Inputs to_inputs(const data::Batch& batch, int64_t first, int64_t rows) {
  const int64_t width = batch.context + 1;
  models::Inputs inputs{at::empty({rows, width}, at::kLong), at::empty({rows, batch.context}, at::kFloat)};
  std::memcpy(inputs.tokens.mutable_data_ptr(), batch.tokens.data() + first * width, inputs.tokens.nbytes());
  std::memcpy(inputs.weights.mutable_data_ptr(), batch.weights.data() + first * batch.context, inputs.weights.nbytes());
  return inputs;
}

models::Inputs to_inputs(const data::Batch& batch) { return to_inputs(batch, 0, batch.rows); }

double total_weight(const data::Batch& batch) {
  return std::accumulate(batch.weights.begin(), batch.weights.end(), 0.0);
}

}  // namespace siamese::eval
