#include "siamese/ops/sinkhorn.h"

#include <ATen/ATen.h>

namespace siamese::ops {

at::Tensor sinkhorn(const at::Tensor& logits, int64_t iterations) {
  at::Tensor log_matrix = logits;
  for (int64_t round = 0; round < iterations; ++round) {
    log_matrix = at::log_softmax(log_matrix, -2);
    log_matrix = at::log_softmax(log_matrix, -1);
  }
  return at::exp(log_matrix);
}

}  // namespace siamese::ops
