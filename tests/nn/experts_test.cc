#include "siamese/nn/experts.h"

#include "tests/support/experts.h"
#include "tests/support/tensors.h"

#include <ATen/Parallel.h>

#include "siamese/ops/reduce.h"

namespace siamese::nn {
namespace experts_test {

at::Tensor weight(const Parameters& parameters, const std::string& name) { return parameters.find(name)->value; }

std::vector<at::Tensor> all(const Parameters& parameters) {
  std::vector<at::Tensor> list;
  for (const auto& parameter : parameters.list()) list.push_back(parameter.value);
  return list;
}

at::Tensor shared_by_token(FeedForwardKind kind, const at::Tensor& x, const Parameters& parameters) {
  std::vector<at::Tensor> rows;
  for (int64_t t = 0; t < x.size(0); ++t) {
    const at::Tensor u = weight(parameters, "shared.in.weight").mv(x[t]);
    rows.push_back(weight(parameters, "shared.out.weight").mv(testing::activate_by_formula(kind, u)));
  }
  return at::stack(rows);
}

TEST(Experts, EqualTheirFormulaForwardAndGradient) {
  const Initializer init({.std = 0.5}, 6, 1);
  for (const auto kind : {FeedForwardKind::swiglu, FeedForwardKind::gelu, FeedForwardKind::gelu_tanh}) {
    for (const bool renormalise : {false, true}) {
      for (const int64_t shared_width : {0, 7}) {
        Parameters exact(3, at::kDouble);
        Parameters single(3, at::kFloat);
        const ExpertsShape shape{kind, 6, 5, 4, 2, shared_width, renormalise};
        const Experts double_experts(Scope(exact), shape, init, 0, {});
        const Experts float_experts(Scope(single), shape, init, 0, {});
        // Both have the floats' values.
        for (size_t i = 0; i < exact.list().size(); ++i) {
          exact.list()[i].value.detach().copy_(single.list()[i].value.detach());
        }
        const at::Tensor x = testing::leaf(testing::randn({3, 5, 6}, 1).to(at::kFloat).to(at::kDouble));
        const at::Tensor x_single = testing::leaf(x.to(at::kFloat));
        const at::Tensor flat = x.view({-1, 6});
        const auto routing = testing::route_by_token(flat.matmul(weight(exact, "router.weight").t()), 2, renormalise);
        at::Tensor wanted = testing::experts_by_token(kind, flat, routing.chosen, routing.weights,
                                                      weight(exact, "experts.in"), weight(exact, "experts.out"));
        if (shared_width > 0) wanted = wanted + shared_by_token(kind, flat, exact);
        const auto objective = [](const at::Tensor& value, const at::Tensor& balance, const at::Tensor& z) {
          const at::Tensor factors = testing::randn(value.sizes(), 5, value.scalar_type());
          return (value * factors).sum() + 3 * balance + 2 * z;
        };
        auto inputs = all(exact);
        inputs.push_back(x);
        const auto gradients =
            torch::autograd::grad({objective(wanted.view(x.sizes()), routing.balance, routing.z)}, inputs, {}, true);
        const auto expect_same = [&](const ExpertsResult& got, std::vector<at::Tensor> of, double tolerance) {
          const std::string what = std::string(enum_text(kind)) + (renormalise ? " renormalised" : "");
          testing::expect_relative(got.value, wanted.view(x.sizes()), tolerance, what);
          EXPECT_TRUE(at::equal(got.counts, at::tensor(routing.counts)));
          const auto mine = torch::autograd::grad({objective(got.value, got.balance, got.z)}, of);
          for (size_t i = 0; i < of.size(); ++i) {
            testing::expect_relative(mine[i], gradients[i], tolerance, what + " gradient " + std::to_string(i));
          }
        };
        expect_same(double_experts(x), inputs, 1e-12);
        auto singles = all(single);
        singles.push_back(x_single);
        expect_same(float_experts(x_single), singles, 4e-6);
      }
    }
  }
}

TEST(Experts, NamesAndShapes) {
  Parameters parameters(3);
  const Experts experts(Scope(parameters).child("ffn"), {FeedForwardKind::swiglu, 6, 5, 4, 2, 7, false},
                        Initializer({}, 6, 2), 1, {});
  const std::vector<std::pair<std::string, std::vector<int64_t>>> wanted = {{"ffn.router.weight", {4, 6}},
                                                                            {"ffn.experts.in", {4, 10, 6}},
                                                                            {"ffn.experts.out", {4, 6, 5}},
                                                                            {"ffn.shared.in.weight", {14, 6}},
                                                                            {"ffn.shared.out.weight", {6, 7}}};
  ASSERT_EQ(parameters.list().size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(parameters.list()[i].name, wanted[i].first);
    EXPECT_EQ(parameters.list()[i].value.sizes(), at::IntArrayRef(wanted[i].second));
    EXPECT_EQ(parameters.list()[i].kind, ParameterKind::linear);
  }
}

// A scheme's factors reach both projections of every expert, and not the router.
TEST(Experts, StartWithTheFactorsOfTheirBranch) {
  const ExpertsShape shape{FeedForwardKind::gelu, 6, 5, 3, 1, 0, false};
  const Initializer init({}, 6, 8);
  Parameters usual(3);
  Parameters scaled(3);
  const Experts first(Scope(usual), shape, init, 2, {});
  const Experts second(Scope(scaled), shape, init, 2, {.input = 3, .output = 0.25, .depth_factor = false});
  testing::expect_same_bits(weight(scaled, "router.weight"), weight(usual, "router.weight"), "router");
  testing::expect_relative(weight(scaled, "experts.in"), weight(usual, "experts.in") * 3, 1e-6, "in");
  testing::expect_relative(weight(scaled, "experts.out"), weight(usual, "experts.out") * (0.25 * std::sqrt(2 * 8)),
                           1e-6, "out");
}

TEST(Experts, DoNotDependOnThreads) {
  const int before = at::get_num_threads();
  std::vector<at::Tensor> first;
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    Parameters parameters(3);
    const Experts experts(Scope(parameters), {FeedForwardKind::swiglu, 128, 96, 8, 2, 0, true}, Initializer({}, 128, 2),
                          0, {});
    const at::Tensor x = testing::leaf(testing::randn({2, 512, 128}, 1, at::kFloat));
    const ExpertsResult result = experts(x);
    auto inputs = all(parameters);
    inputs.push_back(x);
    std::vector<at::Tensor> results =
        torch::autograd::grad({ops::fixed_sum(result.value.square()) + result.balance + result.z}, inputs);
    results.insert(results.end(), {result.value, result.balance, result.z, result.counts});
    if (first.empty()) first = results;
    for (size_t i = 0; i < results.size(); ++i) {
      testing::expect_same_bits(results[i], first[i], std::to_string(threads) + " threads " + std::to_string(i));
    }
  }
  at::set_num_threads(before);
}

TEST(Experts, NoRows) {
  Parameters parameters(3);
  const Experts experts(Scope(parameters), {FeedForwardKind::swiglu, 6, 5, 4, 2, 7, true}, Initializer({}, 6, 2), 0,
                        {});
  const ExpertsResult result = experts(at::zeros({0, 3, 6}));
  EXPECT_EQ(result.value.sizes(), at::IntArrayRef({0, 3, 6}));
  EXPECT_EQ(result.counts.sum().item<int64_t>(), 0);
}

}  // namespace experts_test
}  // namespace siamese::nn
