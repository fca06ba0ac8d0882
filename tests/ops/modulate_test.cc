#include "siamese/ops/modulate.h"

#include "tests/support/tensors.h"

#include <ATen/Parallel.h>

#include "siamese/kernels/simd.h"
#include "siamese/ops/mode.h"

namespace siamese::ops {
namespace modulate_test {

using testing::gradients;
using testing::leaf;
using testing::randn;

// Inputs x and the conditioning [B, 6C] of which shift, scale and gate are parts.
struct Case {
  Case(int64_t batch, int64_t tokens, int64_t cols)
      : exact{leaf(randn({batch, tokens, cols}, 1).to(at::kFloat).to(at::kDouble)),
              leaf(randn({batch, 6 * cols}, 2).to(at::kFloat).to(at::kDouble))},
        single{leaf(exact[0].to(at::kFloat)), leaf(exact[1].to(at::kFloat))} {}
  std::vector<at::Tensor> exact;
  std::vector<at::Tensor> single;
};

at::Tensor fused_of(const std::vector<at::Tensor>& in) {
  const auto parts = in[1].chunk(6, 1);
  return gate(modulate(in[0], parts[0], parts[1]), parts[5]);
}

// The equations, element by element.
at::Tensor expected_of(const std::vector<at::Tensor>& in) {
  std::vector<at::Tensor> rows;
  const int64_t cols = in[0].size(2);
  for (int64_t b = 0; b < in[0].size(0); ++b) {
    const at::Tensor shift = in[1][b].slice(0, 0, cols);
    const at::Tensor scale = in[1][b].slice(0, cols, 2 * cols);
    const at::Tensor factor = in[1][b].slice(0, 5 * cols, 6 * cols);
    rows.push_back((in[0][b] + in[0][b] * scale + shift) * factor);
  }
  return at::stack(rows);
}

void expect_equal(const at::Tensor& got, const std::vector<at::Tensor>& inputs, const Case& c, double tolerance,
                  const std::string& what) {
  const at::Tensor wanted = expected_of(c.exact);
  testing::expect_relative(got, wanted, tolerance, what);
  const auto got_gradients = gradients(got, inputs);
  const auto wanted_gradients = gradients(wanted, c.exact);
  for (size_t i = 0; i < inputs.size(); ++i) {
    testing::expect_relative(got_gradients[i], wanted_gradients[i], tolerance, what + " gradient " + std::to_string(i));
  }
}

TEST(Modulate, FusedEqualsItsEquationForwardAndGradientAtEverySimdLevel) {
  const ModeGuard fused(Mode::fused);
  for (const int64_t target : kernels::simd_targets()) {
    kernels::force_simd_target(target);
    for (const int64_t cols : {1, 31, 33, 257}) {
      for (const int64_t tokens : {1, 31, 33, 257}) {
        const Case c(2, tokens, cols);
        expect_equal(
            fused_of(c.single), c.single, c, 2e-6,
            std::string(kernels::simd_name(target)) + " " + std::to_string(tokens) + "x" + std::to_string(cols));
      }
    }
  }
  kernels::force_simd_target(0);
}

TEST(Modulate, PlainEqualsItsEquationForwardAndGradient) {
  const ModeGuard mode(Mode::plain);
  const Case c(3, 5, 7);
  expect_equal(fused_of(c.exact), c.exact, c, 1e-14, "plain");
}

TEST(Modulate, StridedInputsOfAnyKind) {
  const at::Tensor x = randn({5, 3, 9}, 3, at::kFloat).transpose(0, 1).narrow(2, 1, 7);
  const at::Tensor across = randn({7, 3}, 4, at::kFloat).t();  // neighbours lie in a column
  const at::Tensor one_for_all = randn({1, 7}, 5, at::kFloat).expand({3, 7});
  testing::expect_relative(modulate(x, across, one_for_all),
                           plain::modulate(x.to(at::kDouble), across.to(at::kDouble), one_for_all.to(at::kDouble)),
                           1e-6, "modulate");
  testing::expect_relative(gate(x, across), plain::gate(x.to(at::kDouble), across.to(at::kDouble)), 1e-6, "gate");
}

TEST(Modulate, SameBitsAtAnyThreadCount) {
  const int before = at::get_num_threads();
  std::vector<std::vector<at::Tensor>> results;
  for (const int threads : {1, 2, 5}) {
    at::set_num_threads(threads);
    const Case c(3, 65, 333);
    const at::Tensor y = fused_of(c.single);
    auto all = gradients(y, c.single);
    all.push_back(y);
    results.push_back(all);
  }
  at::set_num_threads(before);
  for (size_t run = 1; run < results.size(); ++run) {
    for (size_t i = 0; i < results[0].size(); ++i) testing::expect_same_bits(results[run][i], results[0][i], "threads");
  }
}

TEST(Modulate, AnEmptyBatchStaysEmpty) {
  EXPECT_EQ(modulate(at::empty({0, 4, 8}), at::empty({0, 8}), at::empty({0, 8})).sizes(), at::IntArrayRef({0, 4, 8}));
}

}  // namespace modulate_test
}  // namespace siamese::ops
