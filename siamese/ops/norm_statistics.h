// What a norm takes out of each row of `value`: of a LayerNorm the mean, of both 1 / sqrt(mean square + eps). The plain
// form: in float at least, then in the type of the value.
#pragma once

#include <vector>

#include <ATen/ATen.h>

namespace siamese::ops::plain {

inline std::vector<at::Tensor> norm_statistics(const at::Tensor& value, bool layer, double eps) {
  std::vector<at::Tensor> statistics;
  at::Tensor wide = value.to(at::promote_types(value.scalar_type(), at::kFloat));
  if (layer) {
    const at::Tensor mean = wide.mean(-1, true);
    statistics.push_back(mean.squeeze(-1).to(value.scalar_type()));
    wide = wide - mean;
  }
  statistics.push_back(at::rsqrt(wide.square().mean(-1) + eps).to(value.scalar_type()));
  return statistics;
}

}  // namespace siamese::ops::plain
