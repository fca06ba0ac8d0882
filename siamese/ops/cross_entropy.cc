#include "siamese/ops/cross_entropy.h"

#include <ATen/ATen.h>

#include "siamese/ops/reduce.h"
#include "siamese/ops/scope.h"

namespace siamese::ops {

CrossEntropy cross_entropy(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& weights) {
  const PartScope scope("part::loss");
  const at::Tensor normalizer = at::logsumexp(logits, {-1});
  at::Tensor nll = normalizer - logits.gather(-1, targets.unsqueeze(-1)).squeeze(-1);
  at::Tensor z = normalizer.square();
  if (weights.defined()) {
    nll = nll * weights;
    z = z * weights;
  }
  return {fixed_sum(nll), fixed_sum(z)};
}

}  // namespace siamese::ops
