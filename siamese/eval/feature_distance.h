// How far apart two sets of feature vectors are: the Frechet distance between the Gaussians fitted to them.
//   |m_a - m_b|^2 + tr(S_a + S_b - 2 (S_a^{1/2} S_b S_a^{1/2})^{1/2})      m: means, S: unbiased covariances
// In double. It says something only about features of one and the same network.
#pragma once

#include <ATen/core/Tensor.h>

namespace siamese::eval {

struct FeatureDistance {
  double frechet = 0;
  double mean_part = 0;
  double covariance_part = 0;
};

// a: [n, width], b: [m, width]. DataError for fewer than 2 rows and for a number that is not finite.
FeatureDistance feature_distance(const at::Tensor& a, const at::Tensor& b);

}  // namespace siamese::eval
