#include "siamese/ops/linear.h"

#include "tests/support/tensors.h"

#include "siamese/ops/gradient.h"
#include "siamese/ops/mode.h"

namespace siamese::ops {
namespace linear_test {

using testing::leaf;
using testing::randn;

// The last shape is large enough for oneDNN's product.
const std::vector<std::array<int64_t, 3>> kShapes = {{1, 1, 1}, {3, 31, 33}, {70, 257, 32}, {520, 257, 131}};

TEST(Linear, FusedEqualsPlainForwardAndGradient) {
  const ModeGuard fused(Mode::fused);
  for (const auto& [rows, in, out] : kShapes) {
    for (const bool bias : {false, true}) {
      const at::Tensor x = randn({2, rows, in}, 1, at::kFloat);
      const at::Tensor w = randn({out, in}, 2, at::kFloat) / std::sqrt(static_cast<double>(in));
      const at::Tensor b = bias ? randn({out}, 3, at::kFloat) : at::Tensor();
      std::vector<at::Tensor> exact = {leaf(x.to(at::kDouble)), leaf(w.to(at::kDouble))};
      std::vector<at::Tensor> single = {leaf(x), leaf(w)};
      if (bias) {
        exact.push_back(leaf(b.to(at::kDouble)));
        single.push_back(leaf(b));
      }
      const at::Tensor wanted = plain::linear(exact[0], exact[1], bias ? exact[2] : at::Tensor());
      const at::Tensor got = ops::linear(single[0], single[1], bias ? single[2] : at::Tensor());
      const std::string what = std::to_string(rows) + "x" + std::to_string(in) + "x" + std::to_string(out);
      testing::expect_relative(got, wanted, 2e-6, what);
      const auto wanted_gradients = testing::gradients(wanted, exact);
      const auto got_gradients = testing::gradients(got, single);
      for (size_t i = 0; i < exact.size(); ++i) {
        testing::expect_relative(got_gradients[i], wanted_gradients[i], 3e-6, what + " gradient " + std::to_string(i));
      }
    }
  }
}

TEST(Linear, AddsToAGradientThatIsThere) {
  const ModeGuard fused(Mode::fused);
  const at::Tensor x = randn({5, 7}, 1, at::kFloat);
  const at::Tensor w = leaf(randn({3, 7}, 2, at::kFloat));
  const at::Tensor fresh = torch::autograd::grad({ops::linear(x, w, at::Tensor()).sum()}, {w})[0];
  w.mutable_grad() = at::ones({3, 7});
  const at::Tensor buffer = w.grad();
  {
    const GradientsInPlace in_place;
    ops::linear(x, w, at::Tensor()).sum().backward();
  }
  testing::expect_relative(buffer, fresh + 1, 1e-6, "in place");
  ops::linear(x, w, at::Tensor()).sum().backward();
  testing::expect_relative(w.grad(), fresh * 2 + 1, 1e-6, "by autograd");
}

// However a weight lies in memory, its gradient is that of its elements. The second shape is one of oneDNN's products.
TEST(Linear, WeightsThatAreNotRowMajor) {
  for (const auto& [rows, in, out] : std::vector<std::array<int64_t, 3>>{{5, 7, 3}, {300, 257, 260}}) {
    const at::Tensor x = randn({rows, in}, 1);
    const at::Tensor w = randn({out, in}, 2);
    const at::Tensor exact = leaf(w);
    const at::Tensor wanted = testing::gradients(plain::linear(x, exact, {}), {exact})[0];
    const at::Tensor single = x.to(at::kFloat);
    const at::Tensor transposed = leaf(w.t().contiguous().to(at::kFloat));
    const auto of_view = testing::gradients(ops::linear(single, transposed.t(), {}), {transposed});
    testing::expect_relative(of_view[0].t(), wanted, 1e-5, "a view");
    const at::Tensor strided = w.t().contiguous().to(at::kFloat).t().set_requires_grad(true);
    const auto of_leaf = testing::gradients(ops::linear(single, strided, {}), {strided});
    testing::expect_relative(of_leaf[0], wanted, 1e-5, "a leaf");
    const at::Tensor wide = at::empty({out, 2 * in}, at::kFloat).slice(1, 0, 2 * in, 2);
    wide.copy_(w);
    const at::Tensor y = ops::linear(single, wide.set_requires_grad(true), {});
    testing::expect_relative(y, plain::linear(x, w, {}), 1e-5, "every other column");
    testing::expect_relative(testing::gradients(y, {wide})[0], wanted, 1e-5, "every other column");
  }
}

// What cannot be added to in place is left to autograd.
TEST(Linear, GradientsThatAreNotRowMajor) {
  const at::Tensor x = randn({5, 7}, 1, at::kFloat);
  const at::Tensor w = leaf(randn({3, 7}, 2, at::kFloat));
  const at::Tensor fresh = torch::autograd::grad({ops::linear(x, w, {}).sum()}, {w})[0];
  w.mutable_grad() = at::ones({7, 3}).t();
  {
    const GradientsInPlace in_place;
    ops::linear(x, w, {}).sum().backward();
  }
  testing::expect_relative(w.grad(), fresh + 1, 1e-6, "strided");
}

TEST(Linear, TheSameBitsAtAnyThreadCount) {
  const ModeGuard fused(Mode::fused);
  const int before = at::get_num_threads();
  const std::vector<at::Tensor> inputs = {leaf(randn({1024, 96}, 1, at::kFloat)), leaf(randn({256, 96}, 2, at::kFloat)),
                                          leaf(randn({256}, 3, at::kFloat))};
  std::vector<at::Tensor> first;
  for (const int threads : {1, 2, 3, 5}) {
    at::set_num_threads(threads);
    const at::Tensor y = ops::linear(inputs[0], inputs[1], inputs[2]);
    std::vector<at::Tensor> results = testing::gradients(y, inputs);
    results.push_back(y);
    if (first.empty()) first = results;
    for (size_t i = 0; i < results.size(); ++i) testing::expect_same_bits(results[i], first[i], std::to_string(i));
  }
  at::set_num_threads(before);
}

}  // namespace linear_test
}  // namespace siamese::ops
