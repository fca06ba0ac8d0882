#include "siamese/ops/row_linear.h"

#include "tests/support/tensors.h"

#include <ATen/Parallel.h>

namespace siamese::ops {
namespace {

using testing::leaf;
using testing::randn;

TEST(RowLinear, IsALinearMapForwardAndGradient) {
  for (const auto& [batch, tokens, in, out] :
       {std::tuple{1, 1, 1, 1}, std::tuple{3, 5, 7, 6}, std::tuple{4, 257, 65, 3}}) {
    const at::Tensor x = leaf(randn({batch, tokens, in}, 1));
    const at::Tensor w = leaf(randn({out, in}, 2));
    const at::Tensor y = row_linear(x, w);
    const at::Tensor wanted = x.matmul(w.t());
    testing::expect_close(y, wanted, 1e-13, "y");
    const auto got = testing::gradients(y, {x, w});
    const auto expected = testing::gradients(wanted, {x, w});
    testing::expect_close(got[0], expected[0], 1e-13, "dx");
    testing::expect_close(got[1], expected[1], 1e-13, "dW");
  }
}

TEST(RowLinear, SameBitsAtAnyThreadCount) {
  const int before = at::get_num_threads();
  std::vector<std::vector<at::Tensor>> results;
  for (const int threads : {1, 2, 3, 5}) {
    at::set_num_threads(threads);
    const at::Tensor x = leaf(randn({32, 96, 4, 64}, 3, at::kFloat));
    const at::Tensor w = leaf(randn({6, 64}, 4, at::kFloat));
    const at::Tensor y = row_linear(x, w);
    auto all = testing::gradients(y, {x, w});
    all.push_back(y);
    results.push_back(all);
  }
  at::set_num_threads(before);
  for (size_t run = 1; run < results.size(); ++run) {
    for (size_t i = 0; i < 3; ++i) testing::expect_same_bits(results[run][i], results[0][i], "threads");
  }
}

TEST(RowLinear, AParameterForEachRow) {
  const at::Tensor w = leaf(randn({3, 2}, 5));
  const at::Tensor y = for_each_row(w, {4, 5});
  EXPECT_EQ(y.sizes(), (std::vector<int64_t>{4, 5, 3, 2}));
  testing::expect_same_bits(y, w.expand({4, 5, 3, 2}), "copies");
  testing::expect_close(testing::gradients(y, {w})[0], testing::gradients(w.expand({4, 5, 3, 2}), {w})[0], 1e-13,
                        "sum");
}

}  // namespace
}  // namespace siamese::ops
