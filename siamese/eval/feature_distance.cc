#include "siamese/eval/feature_distance.h"

#include <string>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "siamese/base/check.h"
#include "siamese/nn/expect.h"
#include "siamese/ops/one_thread.h"

namespace siamese::eval {
namespace {

struct Gaussian {
  at::Tensor mean;        // [width]
  at::Tensor covariance;  // [width, width]
};

Gaussian fitted(const at::Tensor& features, const std::string& name) {
  const int64_t rows = features.size(0);
  if (rows < 2) {
    throw DataError("feature distance: expected at least 2 rows in the " + name + " set, got " + std::to_string(rows));
  }
  const at::Tensor x = features.to(at::kCPU, at::kDouble);
  if (!at::isfinite(x).all().item<bool>()) {
    throw DataError("feature distance: expected finite numbers, the " + name + " set has others");
  }
  const at::Tensor mean = x.mean(0);
  const at::Tensor centred = x - mean;
  return {mean, at::mm(centred.t(), centred) / static_cast<double>(rows - 1)};
}

// The root of each eigenvalue; what rounding made negative is 0.
at::Tensor roots(const at::Tensor& eigenvalues) { return eigenvalues.clamp_min(0).sqrt(); }

at::Tensor symmetric_root(const at::Tensor& matrix) {
  const auto [values, vectors] = at::linalg_eigh(matrix);
  return at::mm(vectors * roots(values), vectors.t());
}

FeatureDistance distance_of(const at::Tensor& a, const at::Tensor& b) {
  const Gaussian one = fitted(a, "first");
  const Gaussian other = fitted(b, "second");
  const at::Tensor root = symmetric_root(one.covariance);
  const at::Tensor product = at::mm(at::mm(root, other.covariance), root);
  const at::Tensor shared = roots(at::linalg_eigvalsh(0.5 * (product + product.t())));
  FeatureDistance distance;
  distance.mean_part = (one.mean - other.mean).square().sum().item<double>();
  distance.covariance_part = (one.covariance.trace() + other.covariance.trace() - 2 * shared.sum()).item<double>();
  distance.frechet = distance.mean_part + distance.covariance_part;
  return distance;
}

}  // namespace

FeatureDistance feature_distance(const at::Tensor& a, const at::Tensor& b) {
  nn::expect_shape("features", a, {-1, -1});
  nn::expect_shape("features of the other set", b, {-1, a.size(1)});
  nn::expect_that(a.size(1) > 0, "features", "a width above 0", a.size(1));
  const ops::OneThread one_thread;  // products and eigenvalues in one order
  const c10::NoGradGuard no_grad;
  return distance_of(a, b);
}

}  // namespace siamese::eval
