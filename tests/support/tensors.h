// Shared by the tests of rooms with tensors: reproducible random tensors, comparison, gradients.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include "siamese/base/random.h"

namespace siamese::testing {

// Standard normals, the same for the same (shape, seed) whatever the dtype.
inline at::Tensor randn(at::IntArrayRef shape, uint64_t seed, at::ScalarType dtype = at::kDouble) {
  at::Tensor x = at::empty(shape, at::kDouble);
  double* const data = x.mutable_data_ptr<double>();
  for (int64_t i = 0; i < x.numel(); ++i) data[i] = random_normal(seed, 77, static_cast<uint64_t>(i));
  return x.to(dtype);
}

inline double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return a.numel() == 0 ? 0 : (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

inline double largest(const at::Tensor& a) { return a.numel() == 0 ? 0 : a.to(at::kDouble).abs().max().item<double>(); }

// |a - b| <= tolerance * max |b| of this tensor; zeros must be zeros. Where b is what is left of terms that cancel (a
// gradient that is 0 in exact arithmetic), a few roundings of the largest of these `terms` are allowed too, in the type
// of a.
inline void expect_relative(const at::Tensor& a, const at::Tensor& b, double tolerance, const std::string& what,
                            double terms = 0) {
  ASSERT_TRUE(a.defined() && b.defined()) << what;
  ASSERT_EQ(a.sizes(), b.sizes()) << what;
  const double rounding =
      a.scalar_type() == at::kFloat ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  EXPECT_LE(largest_difference(a, b), tolerance * largest(b) + 32 * rounding * terms) << what;
}

inline void expect_same_bits(const at::Tensor& a, const at::Tensor& b, const std::string& what) {
  ASSERT_EQ(a.defined(), b.defined()) << what;
  if (!a.defined()) return;
  EXPECT_TRUE(at::equal(a, b)) << what << ": largest difference " << largest_difference(a, b);
}

// d (sum of y * weights) / d inputs, with fixed random weights; undefined where y does not depend on an input.
inline std::vector<at::Tensor> gradients(const at::Tensor& y, const std::vector<at::Tensor>& inputs) {
  const at::Tensor weights = randn(y.sizes(), 4242, y.scalar_type());
  return torch::autograd::grad({y}, inputs, {weights}, /*retain_graph=*/true, /*create_graph=*/false,
                               /*allow_unused=*/true);
}

inline at::Tensor leaf(const at::Tensor& x) { return x.detach().clone().set_requires_grad(true); }

}  // namespace siamese::testing
