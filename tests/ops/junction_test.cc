#include "siamese/ops/junction.h"

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

#include <ATen/Parallel.h>

#include "siamese/kernels/simd.h"
#include "siamese/ops/gradient.h"
#include "siamese/ops/mode.h"

namespace siamese::ops {
namespace junction_test {

using testing::leaf;
using testing::randn;

constexpr double kTolerance = 5e-6;  // float against double: statistics of up to three norms in a row

struct Case {
  const char* name;
  bool two_streams, branch, branch_norm, x_norm, x_scale, y_norm, input_norm;
  double x_branch, y_branch, y_skip, input_scale;
};

constexpr Case kCases[] = {
    {"pre", false, true, false, false, false, true, false, 0, 1, 1, 1},
    {"pre first", false, false, false, false, false, true, false, 0, 0, 1, 1},
    {"lns", false, true, false, false, false, true, false, 0, 1, 1, 0.5},
    {"peri", false, true, true, false, false, true, false, 0, 1, 1, 1},
    {"olmo2", false, true, true, false, false, false, false, 0, 1, 1, 1},
    {"deepnorm", false, true, false, false, false, true, false, 0, 1, 1.7, 1},
    {"siamese", true, true, false, true, false, true, true, 0.7, 1, 1, 1},
    {"siamese first", true, false, false, true, false, true, true, 0, 0, 1, 1},
    {"siamese without input norm", true, true, false, true, false, true, false, 0.5, 1, 1, 1},
    {"siamese after peri", true, true, true, true, false, true, true, 0.5, 1, 1, 1},
    {"hybrid attention", true, true, false, false, true, true, false, 0.5, 1, 1, 1},
    {"hybrid attention first", true, false, false, false, true, true, false, 0, 0, 1, 1},
    {"input norm alone", false, true, false, false, false, false, true, 0, 1, 1, 1},
    {"input norm alone, first", false, false, false, false, false, false, true, 0, 0, 1, 1},
};

// The junction of a case and its differentiable tensors.
struct Example {
  Junction junction;
  std::vector<at::Tensor> leaves;
};

Example example(const Case& c, bool layer, int64_t rows, int64_t cols, at::ScalarType dtype) {
  Example e;
  uint64_t seed = 10;
  const auto tensor = [&](bool there, at::IntArrayRef shape, double scale, double center) {
    ++seed;
    if (!there) return at::Tensor();
    return e.leaves.emplace_back(leaf((randn(shape, seed) * scale + center).to(at::kFloat).to(dtype)));
  };
  const auto norm = [&](bool there) {
    NormStep made{there, layer, {}, {}, 1e-5};
    made.gain = tensor(there, {cols}, 0.5, 1);
    made.bias = tensor(there && layer, {cols}, 0.5, 0);
    return made;
  };
  e.junction.branch = tensor(c.branch, {rows, cols}, 1, 0);
  e.junction.x = tensor(c.two_streams, {rows, cols}, 1, 0.2);
  e.junction.y = tensor(true, {rows, cols}, 2, -0.1);
  e.junction.x_scale = tensor(c.x_scale, {cols}, 0.3, 1);
  e.junction.branch_norm = norm(c.branch_norm);
  e.junction.x_norm = norm(c.x_norm);
  e.junction.y_norm = norm(c.y_norm);
  e.junction.input_norm = norm(c.input_norm);
  e.junction.x_branch = c.x_branch;
  e.junction.y_branch = c.y_branch;
  e.junction.y_skip = c.y_skip;
  e.junction.input_scale = c.input_scale;
  return e;
}

// All of what a junction returns, weighted differently, as one differentiable tensor.
at::Tensor joined(const JunctionResult& result) {
  std::vector<at::Tensor> parts = {result.input, 2 * result.y};
  if (result.x.defined()) parts.push_back(3 * result.x);
  return at::cat(parts, 0);
}

TEST(Junction, FusedEqualsPlainForwardAndGradientAtEverySimdLevel) {
  const int before = at::get_num_threads();
  at::set_num_threads(1);  // too small to share
  for (const int64_t target : kernels::simd_targets()) {
    kernels::force_simd_target(target);
    for (const auto& c : kCases) {
      for (const bool layer : {false, true}) {
        for (const int64_t cols : {1, 31, 32, 33, 257}) {
          // Of one number a norm keeps the sign: its gradient is a difference of almost equal numbers, and a second
          // norm behind it divides by what is left.
          if (cols == 1 && (layer || c.two_streams)) continue;
          if (target != kernels::simd_targets().front() && cols != 33) continue;  // the rest: tests/kernels
          for (const int64_t rows : {1, 130}) {
            const std::string what = std::string(c.name) + (layer ? " layer " : " rms ") + kernels::simd_name(target) +
                                     " " + std::to_string(rows) + " x " + std::to_string(cols);
            const Example exact = example(c, layer, rows, cols, at::kDouble);
            const Example single = example(c, layer, rows, cols, at::kFloat);
            const JunctionResult wanted = plain::junction(exact.junction);
            const ModeGuard fused(Mode::fused);
            const JunctionResult got = junction(single.junction);
            testing::expect_relative(joined(got), joined(wanted), kTolerance, what);
            if (c.two_streams) testing::expect_relative(got.x_sum, wanted.x_sum, kTolerance, what + " U");
            const auto got_gradients = testing::gradients(joined(got), single.leaves);
            const auto wanted_gradients = testing::gradients(joined(wanted), exact.leaves);
            double terms = 0;  // of the difference
            for (const auto& gradient : wanted_gradients) {
              if (cols == 1) terms = std::max(terms, testing::largest(gradient));
            }
            for (size_t i = 0; i < got_gradients.size(); ++i) {
              testing::expect_relative(got_gradients[i], wanted_gradients[i], kTolerance,
                                       what + " gradient " + std::to_string(i), terms);
            }
          }
        }
      }
    }
  }
  kernels::force_simd_target(0);
  at::set_num_threads(before);
}

// The same in rows of samples, each with its gate, which is a part of a wider tensor.
Example gated_example(const Case& c, bool layer, int64_t samples, int64_t tokens, int64_t cols, at::ScalarType dtype) {
  Example e = example(c, layer, samples * tokens, cols, dtype);
  for (at::Tensor* rows : {&e.junction.branch, &e.junction.x, &e.junction.y}) {
    if (rows->defined()) *rows = rows->view({samples, tokens, cols});
  }
  e.leaves.push_back(leaf((randn({samples, 3 * cols}, 77) * 0.5 + 0.5).to(at::kFloat).to(dtype)));
  e.junction.gate = e.leaves.back().narrow(1, cols, cols);
  return e;
}

TEST(Junction, GatesOfSamplesEqualPlainForwardAndGradientAtEverySimdLevel) {
  const ModeGuard fused(Mode::fused);
  for (const int64_t target : kernels::simd_targets()) {
    kernels::force_simd_target(target);
    for (const auto& c : kCases) {
      if (!c.branch) continue;
      for (const bool layer : {false, true}) {
        for (const int64_t cols : {16, 31, 33, 257}) {
          if (target != kernels::simd_targets().front() && cols != 33) continue;
          for (const int64_t tokens : {1, 5, 70}) {
            const std::string what = std::string(c.name) + (layer ? " layer " : " rms ") + kernels::simd_name(target) +
                                     " 3 x " + std::to_string(tokens) + " x " + std::to_string(cols);
            const Example exact = gated_example(c, layer, 3, tokens, cols, at::kDouble);
            const Example single = gated_example(c, layer, 3, tokens, cols, at::kFloat);
            const at::Tensor got = joined(junction(single.junction));
            const at::Tensor wanted = joined(plain::junction(exact.junction));
            testing::expect_relative(got, wanted, kTolerance, what);
            const auto got_gradients = testing::gradients(got, single.leaves);
            const auto wanted_gradients = testing::gradients(wanted, exact.leaves);
            for (size_t i = 0; i < got_gradients.size(); ++i) {
              testing::expect_relative(got_gradients[i], wanted_gradients[i], kTolerance,
                                       what + " gradient " + std::to_string(i));
            }
          }
        }
      }
    }
  }
  kernels::force_simd_target(0);
}

// The mask of drop-path has no gradient: then the branch is not kept for one.
TEST(Junction, ABranchIsKeptForAGateThatLearnsOnly) {
  const ModeGuard fused(Mode::fused);
  for (const bool learns : {false, true}) {
    const at::Tensor y = leaf(randn({2, 3, 33}, 1).to(at::kFloat)), z = leaf(randn({2, 3, 33}, 2).to(at::kFloat));
    const at::Tensor gate = at::ones({2, 33}).set_requires_grad(learns);
    Junction j{.branch = z * 2, .y = y, .y_branch = 1, .gate = gate};
    const c10::weak_intrusive_ptr<c10::TensorImpl> kept(j.branch.getIntrusivePtr());
    const at::Tensor sum = junction(j).y;
    j.branch = at::Tensor();
    EXPECT_EQ(kept.expired(), !learns);
  }
}

TEST(Junction, AGateThatIsNotOneRowForEachSampleIsRefused) {
  const at::Tensor x = at::ones({2, 4, 5});
  for (const auto& gate : {at::ones({4, 5}), at::ones({2, 1}), at::ones({2, 1, 5})}) {
    const Junction j{.branch = x, .y = x, .y_branch = 1, .gate = gate};
    testing::expect_error<UsageError>([&] { junction(j); }, {"siamese::junction: gate", "expected", "[2, 5]"});
  }
}

TEST(Junction, OutputsThatNobodyUsesHaveNoGradient) {
  const ModeGuard fused(Mode::fused);
  for (const int which : {0, 1, 2}) {
    const Example exact = example(kCases[6], false, 5, 33, at::kDouble);
    const Example single = example(kCases[6], false, 5, 33, at::kFloat);
    const auto pick = [&](const JunctionResult& r) { return which == 0 ? r.input : which == 1 ? r.x : r.y; };
    const auto wanted = testing::gradients(pick(plain::junction(exact.junction)), exact.leaves);
    const auto got = testing::gradients(pick(junction(single.junction)), single.leaves);
    for (size_t i = 0; i < got.size(); ++i) {
      const at::Tensor zero = at::zeros_like(exact.leaves[i]);
      testing::expect_relative(got[i], wanted[i].defined() ? wanted[i] : zero, kTolerance, std::to_string(which));
    }
  }
}

TEST(Junction, GradientsInPlaceAreAddedToTheGradOfEveryGainAndScale) {
  const Case all = {"all", true, true, true, true, true, true, true, 0.5, 1, 1, 1};
  const Example apart = example(all, true, 130, 33, at::kFloat);
  const auto wanted = testing::gradients(joined(junction(apart.junction)), apart.leaves);
  const Example e = example(all, true, 130, 33, at::kFloat);
  const at::Tensor y = joined(junction(e.junction));
  std::vector<at::Tensor> grads;
  for (const auto& leaf : e.leaves) grads.push_back(leaf.mutable_grad() = at::ones_like(leaf));
  {
    const GradientsInPlace in_place;
    y.backward(randn(y.sizes(), 4242, at::kFloat));
  }
  for (size_t i = 0; i < grads.size(); ++i) {
    EXPECT_TRUE(e.leaves[i].grad().is_same(grads[i])) << i;
    testing::expect_same_bits(grads[i], wanted[i] + 1, "gradient " + std::to_string(i));
  }
}

// pre: what comes back to the sum is the gradient of both summands, so one array serves them.
TEST(Junction, BranchAndStreamShareTheirGradientWhereTheyAreAddedAlike) {
  const ModeGuard fused(Mode::fused);
  for (const bool alike : {true, false}) {
    const Case c = {"", false, true, false, false, false, true, false, 0, 1, alike ? 1 : 1.5, 1};
    const Example e = example(c, false, 5, 33, at::kFloat);
    const auto gradients = testing::gradients(joined(junction(e.junction)), e.leaves);
    EXPECT_EQ(gradients[0].const_data_ptr() == gradients[1].const_data_ptr(), alike);
  }
}

TEST(Junction, ABiasBesideAnRmsNormIsRefused) {
  const at::Tensor x = at::ones({2, 5});
  const NormStep norm{true, /*layer=*/false, {}, at::ones({5}), 1e-5};
  const std::vector<std::pair<std::string, NormStep Junction::*>> norms = {{"branch_bias", &Junction::branch_norm},
                                                                           {"x_bias", &Junction::x_norm},
                                                                           {"y_bias", &Junction::y_norm},
                                                                           {"input_bias", &Junction::input_norm}};
  for (const auto& [name, where] : norms) {
    Junction j{.branch = x, .x = x, .y = x, .x_branch = 1, .y_branch = 1};
    j.*where = norm;
    testing::expect_error<UsageError>([&] { junction(j); }, {"siamese::junction: " + name, "expected no bias"});
  }
  testing::expect_error<UsageError>([&] { apply(norm, x); }, {"bias", "expected no bias"});
}

TEST(Junction, SameBitsAtAnyThreadCount) {
  const ModeGuard fused(Mode::fused);
  const int before = at::get_num_threads();
  std::vector<std::vector<at::Tensor>> results;
  for (const int threads : {1, 2, 3, 5}) {
    at::set_num_threads(threads);
    const Example e = example(kCases[6], true, 777, 65, at::kFloat);
    const at::Tensor y = joined(junction(e.junction));
    auto all = testing::gradients(y, e.leaves);
    all.push_back(y);
    const Example gated = gated_example(kCases[9], true, 5, 161, 65, at::kFloat);
    for (const at::Tensor& gradient : testing::gradients(joined(junction(gated.junction)), gated.leaves)) {
      all.push_back(gradient);
    }
    results.push_back(all);
  }
  at::set_num_threads(before);
  for (size_t run = 1; run < results.size(); ++run) {
    for (size_t i = 0; i < results[0].size(); ++i) testing::expect_same_bits(results[run][i], results[0][i], "threads");
  }
}

}  // namespace junction_test
}  // namespace siamese::ops
