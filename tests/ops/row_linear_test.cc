#include "siamese/ops/row_linear.h"

#include "tests/support/tensors.h"

#include <ATen/Parallel.h>

#include "siamese/ops/mode.h"

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
    testing::expect_relative(y, wanted, 1e-13, "y");
    const auto got = testing::gradients(y, {x, w});
    const auto expected = testing::gradients(wanted, {x, w});
    testing::expect_relative(got[0], expected[0], 1e-13, "dx");
    testing::expect_relative(got[1], expected[1], 1e-13, "dW");
  }
}

TEST(RowLinear, SameBitsAtAnyThreadCount) {
  struct Size {
    int64_t rows, in, out;
  };
  const int before = at::get_num_threads();
  for (const Size& size : {Size{12288, 64, 6}, Size{37, 33, 65}, Size{256, 128, 8}}) {  // the last two are one part
    std::vector<std::vector<at::Tensor>> results;
    for (const int threads : {1, 2, 3, 5}) {
      at::set_num_threads(threads);
      const at::Tensor x = leaf(randn({size.rows, size.in}, 3, at::kFloat));
      const at::Tensor w = leaf(randn({size.out, size.in}, 4, at::kFloat));
      const at::Tensor y = row_linear(x, w);
      auto all = testing::gradients(y, {x, w});
      all.push_back(y);
      results.push_back(all);
    }
    for (size_t run = 1; run < results.size(); ++run) {
      for (size_t i = 0; i < 3; ++i) testing::expect_same_bits(results[run][i], results[0][i], "threads");
    }
  }
  at::set_num_threads(before);
}

TEST(RowLinear, ProjectionFusedEqualsPlainForwardAndGradient) {
  for (const int64_t cols : {1, 31, 32, 33, 257}) {
    for (const int64_t rows : {1, 700}) {
      const auto run = [&](at::ScalarType dtype, bool fused) {
        const at::Tensor x = leaf(randn({2, rows, cols}, 6, at::kFloat).to(dtype));
        const at::Tensor w = leaf(randn({5, cols + 3}, 7, at::kFloat).to(dtype));
        const at::Tensor part = w.narrow(1, 2, cols);
        const RowProjection made = fused ? row_project(x, part) : plain::row_project(x, part);
        const at::Tensor all = at::cat({made.y, made.squares, 0.5 * made.x}, -1);
        return std::pair(all, testing::gradients(all, {x, w}));
      };
      const ModeGuard guard(Mode::fused);
      const auto got = run(at::kFloat, true);
      const auto wanted = run(at::kDouble, false);
      const std::string what = std::to_string(rows) + " x " + std::to_string(cols);
      testing::expect_relative(got.first, wanted.first, 3e-6, what);
      testing::expect_relative(got.second[0], wanted.second[0], 3e-6, what + " dx");
      testing::expect_relative(got.second[1], wanted.second[1], 3e-6, what + " dW");
    }
  }
}

// The square of 300 is no number of float16, nor is the sum of many.
TEST(RowLinear, SquaresOfHalfTypesAreFloats) {
  for (const auto type : {at::kHalf, at::kBFloat16}) {
    const at::Tensor x = leaf(at::full({2, 64}, 300.0, type));
    const at::Tensor w = leaf(at::full({3, 64}, 0.01, type));
    const RowProjection made = row_project(x, w);
    EXPECT_EQ(made.squares.scalar_type(), at::kFloat);
    const double square = x[0][0].item<double>() * x[0][0].item<double>();
    testing::expect_relative(made.squares, at::full({2, 1}, 64 * square), 1e-6, "squares");
    const auto gradients =
        torch::autograd::grad({made.squares.sum(), made.x.sum()}, {x}, {at::full({}, 1e-3), at::ones({}, type)});
    testing::expect_relative(gradients[0], at::full({2, 64}, 1.6), 1.0 / 256, "dx");
  }
}

TEST(RowLinear, ProjectionHasTheSameBitsAtAnyThreadCount) {
  const ModeGuard guard(Mode::fused);
  const int before = at::get_num_threads();
  std::vector<std::vector<at::Tensor>> results;
  for (const int threads : {1, 2, 3, 5}) {
    at::set_num_threads(threads);
    const at::Tensor x = leaf(randn({32, 96, 65}, 8, at::kFloat));
    const at::Tensor w = leaf(randn({6, 65}, 9, at::kFloat));
    const RowProjection made = row_project(x, w);
    auto all = testing::gradients(at::cat({made.y, made.squares, made.x}, -1), {x, w});
    all.insert(all.end(), {made.y, made.squares});
    results.push_back(all);
  }
  at::set_num_threads(before);
  for (const auto& result : results) {
    for (size_t i = 0; i < result.size(); ++i) testing::expect_same_bits(result[i], results[0][i], "threads");
  }
}

TEST(RowLinear, AParameterForEachRow) {
  const at::Tensor w = leaf(randn({3, 2}, 5));
  const at::Tensor y = for_each_row(w, {4, 5});
  EXPECT_EQ(y.sizes(), (std::vector<int64_t>{4, 5, 3, 2}));
  testing::expect_same_bits(y, w.expand({4, 5, 3, 2}), "copies");
  testing::expect_relative(testing::gradients(y, {w})[0], testing::gradients(w.expand({4, 5, 3, 2}), {w})[0], 1e-13,
                           "sum");
}

}  // namespace
}  // namespace siamese::ops
