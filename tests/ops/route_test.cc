#include "siamese/ops/route.h"

#include "tests/support/experts.h"
#include "tests/support/tensors.h"

#include <ATen/Parallel.h>

#include "siamese/ops/mode.h"

namespace siamese::ops {
namespace route_test {

using testing::leaf;
using testing::randn;

// All that flows back, with unlike factors.
std::vector<at::Tensor> gradient(const at::Tensor& weights, const at::Tensor& balance, const at::Tensor& z,
                                 const at::Tensor& logits) {
  const at::Tensor factors = randn(weights.sizes(), 9, weights.scalar_type());
  return torch::autograd::grad({(weights * factors).sum() + 3 * balance - 2 * z}, {logits});
}

void expect_equation(const Routing& got, const at::Tensor& logits, const at::Tensor& exact, int64_t k, bool renormalise,
                     double tolerance, const std::string& what) {
  const auto wanted = testing::route_by_token(exact, k, renormalise);
  std::vector<at::Tensor> rows;
  for (size_t t = 0; t < wanted.chosen.size(); ++t) {
    rows.push_back(at::stack(wanted.weights[t]));
    for (int64_t r = 0; r < k; ++r) {
      ASSERT_EQ(got.chosen[int64_t(t)][r].item<int64_t>(), wanted.chosen[t][size_t(r)]) << what;
    }
  }
  const at::Tensor weights = at::stack(rows);
  testing::expect_relative(got.weights, weights, tolerance, what + " weights");
  testing::expect_relative(got.balance, wanted.balance, tolerance, what + " balance");
  testing::expect_relative(got.z, wanted.z, tolerance, what + " z");
  for (size_t e = 0; e < wanted.counts.size(); ++e) {
    EXPECT_EQ(got.counts[int64_t(e)].item<int64_t>(), wanted.counts[e]) << what;
  }
  testing::expect_relative(gradient(got.weights, got.balance, got.z, logits)[0],
                           gradient(weights, wanted.balance, wanted.z, exact)[0], tolerance, what + " gradient");
}

TEST(Route, EqualsItsEquation) {
  for (const bool renormalise : {false, true}) {
    for (const auto& [rows, experts, k] :
         {std::array{1, 1, 1}, std::array{7, 5, 1}, std::array{33, 5, 5}, std::array{31, 9, 3}}) {
      const at::Tensor exact = leaf(randn({rows, experts}, 1).to(at::kFloat).to(at::kDouble));
      const at::Tensor single = leaf(exact.to(at::kFloat));
      const std::string what = std::to_string(rows) + "x" + std::to_string(experts) + " top " + std::to_string(k) +
                               (renormalise ? " renormalised" : "");
      expect_equation(plain::route(exact, k, renormalise), exact, exact, k, renormalise, 1e-12, "plain " + what);
      const ModeGuard fused(Mode::fused);
      expect_equation(route(single, k, renormalise), single, exact, k, renormalise, 2e-6, "fused " + what);
    }
  }
}

TEST(Route, OfEqualLogitsTheLowerExpertIsTaken) {
  const at::Tensor logits = at::tensor({1.F, 2.F, 2.F, 0.F, 2.F, 1.F, 0.F, 0.F, 0.F, 0.F, 0.F, 0.F}).view({2, 6});
  const at::Tensor wanted = at::tensor({1, 2, 4, 0, 0, 1, 2, 3}, at::kLong).view({2, 4});
  for (const auto mode : {Mode::fused, Mode::plain}) {
    const ModeGuard guard(mode);
    EXPECT_TRUE(at::equal(route(logits, 4, false).chosen, wanted));
  }
}

// Of probabilities too small for a float the logits still tell the order.
TEST(Route, FarLogits) {
  const at::Tensor logits = at::tensor({-300.F, 500.F, -200.F, -400.F}).view({1, 4});
  for (const auto mode : {Mode::fused, Mode::plain}) {
    const ModeGuard guard(mode);
    const Routing routing = route(logits, 3, true);
    EXPECT_TRUE(at::equal(routing.chosen, at::tensor({1, 2, 0}, at::kLong).view({1, 3})));
    EXPECT_TRUE(at::equal(routing.weights, at::tensor({1.F, 0.F, 0.F}).view({1, 3})));
    EXPECT_FLOAT_EQ(routing.z.item<float>(), 250000);
  }
}

// A model that has diverged must not write out of bounds.
TEST(Route, WhatIsNotANumberStillChoosesDifferentExperts) {
  at::Tensor logits = randn({4, 5}, 1, at::kFloat);
  logits[0].fill_(NAN);
  logits[1][0] = NAN;
  logits[2][4] = NAN;
  logits[3][2] = INFINITY;
  const ModeGuard fused(Mode::fused);
  const at::Tensor chosen = std::get<0>(route(logits, 3, false).chosen.sort(1));
  EXPECT_TRUE((chosen.diff(1, 1) > 0).all().item<bool>()) << chosen;
  EXPECT_TRUE(((chosen >= 0) * (chosen < 5)).all().item<bool>()) << chosen;
}

TEST(Route, BalanceIsOneWhenBalancedAndEWhenNot) {
  const at::Tensor even = at::eye(4).repeat({8, 1}) * 1e-3;
  EXPECT_NEAR(route(even.to(at::kFloat), 1, false).balance.item<double>(), 1, 1e-6);
  const at::Tensor one = at::tensor({50.F, 0.F, 0.F, 0.F}).repeat({32, 1});
  EXPECT_NEAR(route(one, 1, false).balance.item<double>(), 4, 1e-6);
}

TEST(Route, NoRows) {
  for (const auto mode : {Mode::automatic, Mode::plain}) {
    const ModeGuard guard(mode);
    const at::Tensor logits = leaf(at::zeros({0, 3}));
    const Routing routing = route(logits, 2, true);
    EXPECT_EQ(routing.chosen.sizes(), at::IntArrayRef({0, 2}));
    EXPECT_EQ(routing.balance.item<double>(), 0);
    EXPECT_EQ(routing.z.item<double>(), 0);
    EXPECT_EQ(routing.counts.sum().item<int64_t>(), 0);
    EXPECT_EQ(gradient(routing.weights, routing.balance, routing.z, logits)[0].numel(), 0);
  }
}

TEST(Route, DoesNotDependOnThreads) {
  const int before = at::get_num_threads();
  for (const auto mode : {Mode::fused, Mode::plain}) {
    const ModeGuard guard(mode);
    std::vector<at::Tensor> first;
    for (const int threads : {1, 2, 3}) {
      at::set_num_threads(threads);
      const at::Tensor logits = leaf(randn({40009, 17}, 1, at::kFloat));
      const Routing routing = route(logits, 4, true);
      const std::vector<at::Tensor> results = {routing.weights, routing.balance, routing.z,
                                               gradient(routing.weights, routing.balance, routing.z, logits)[0]};
      if (first.empty()) first = results;
      for (size_t i = 0; i < results.size(); ++i) {
        testing::expect_same_bits(results[i], first[i],
                                  std::string(mode == Mode::fused ? "fused " : "plain ") + std::to_string(threads) +
                                      " threads, " + std::to_string(i));
      }
    }
  }
  at::set_num_threads(before);
}

}  // namespace route_test
}  // namespace siamese::ops
