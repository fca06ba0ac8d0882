#include "tests/ops/op_cases.h"
#include "tests/support/tensors.h"

#include "siamese/ops/reduce.h"

namespace siamese::ops {

std::vector<OpCase> reduce_cases() {
  using testing::randn;
  const Call sum = [](const Tensors& t) { return Tensors{fixed_sum(t[0])}; };
  const Call plain_sum = [](const Tensors& t) { return Tensors{plain::fixed_sum(t[0])}; };
  const Call squares = [](const Tensors& t) { return Tensors{sum_squares_of(t)}; };
  const Call plain_squares = [](const Tensors& t) { return Tensors{plain::sum_squares_of(t)}; };
  // Away from 0: a sum is compared relative to itself.
  std::vector<OpCase> cases = {
      {"fixed_sum", "a few", {randn({3, 5, 33}, 1).abs()}, sum, plain_sum},
      {"fixed_sum", "in many parts", {randn({40009}, 1).abs()}, sum, plain_sum},
      {"fixed_sum", "a scalar", {randn({}, 1)}, sum, plain_sum},
      {"fixed_sum", "of nothing", {at::zeros({0, 3}, at::kDouble)}, sum, plain_sum},
      {"sum_squares", "of three", {randn({5, 7}, 1), randn({20011}, 2), randn({}, 3)}, squares, plain_squares},
      {"sum_squares", "of nothing", {at::zeros({2, 0}, at::kDouble)}, squares, plain_squares},
  };
  for (auto& test : cases) test.linear = test.op == "fixed_sum";
  return cases;
}

}  // namespace siamese::ops
