#include "tests/ops/op_cases.h"
#include "tests/support/tensors.h"

#include "siamese/ops/linear.h"

namespace siamese::ops {

std::vector<OpCase> linear_cases() {
  using testing::randn;
  const auto call = [](const Tensors& t) {
    return Tensors{ops::linear(t[0], t[1], t.size() > 2 ? t[2] : at::Tensor())};
  };
  const auto plain = [](const Tensors& t) {
    return Tensors{plain::linear(t[0], t[1], t.size() > 2 ? t[2] : at::Tensor())};
  };
  const at::Tensor weight = randn({9, 33}, 2);
  const at::Tensor bias = randn({9}, 3);
  return {
      {"linear", "with bias", {randn({3, 5, 33}, 1), weight, bias}, call, plain},
      {"linear", "without bias", {randn({7, 33}, 1), weight}, call, plain},
      {"linear", "of one row", {randn({33}, 1), weight, bias}, call, plain},
      {"linear", "of no rows", {randn({3, 0, 33}, 1), weight, bias}, call, plain},
      {"linear", "of no columns", {randn({3, 0}, 1), randn({9, 0}, 2), bias}, call, plain},
  };
}

}  // namespace siamese::ops
