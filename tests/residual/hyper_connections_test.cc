// HC and mHC against their equations, stream by stream, and how they start.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/residual/harness.h"

namespace siamese::residual {
namespace {

using Tensors = std::vector<at::Tensor>;

at::Tensor column(const at::Tensor& values) { return values.unsqueeze(-1); }

// H: the n streams; a_m, b: n values each; a_r[i][j]: what stream i gives to stream j.
void hyper_step(const Toy& toy, size_t site, Tensors& h, const Tensors& a_m, const std::vector<Tensors>& a_r,
                const Tensors& b) {
  at::Tensor input = column(a_m[0]) * h[0];
  for (size_t i = 1; i < h.size(); ++i) input = input + column(a_m[i]) * h[i];
  const at::Tensor o = toy.sublayer(site, toy.at_site(site, "norm", input));
  Tensors next;
  for (size_t j = 0; j < h.size(); ++j) {
    at::Tensor mixed = column(a_r[0][j]) * h[0];
    for (size_t i = 1; i < h.size(); ++i) mixed = mixed + column(a_r[i][j]) * h[i];
    next.push_back(mixed + column(b[j]) * o);
  }
  h = next;
}

at::Tensor summed(const Toy& toy, const Tensors& h) {
  at::Tensor sum = h[0];
  for (size_t i = 1; i < h.size(); ++i) sum = sum + h[i];
  return toy.normed("close.norm", sum);
}

Equation hyper_connections(size_t n, bool dynamic, bool tanh) {
  return [=](const Toy& toy, const at::Tensor& e) {
    Tensors h(n, e);
    for (size_t site = 0; site < toy.depth(); ++site) {
      Tensors a_m(n), b(n);
      std::vector<Tensors> a_r(n, Tensors(n));
      for (size_t i = 0; i < n; ++i) {
        const auto row = static_cast<int64_t>(i);
        a_m[i] = toy.own(site, "input_mix")[row];
        b[i] = toy.own(site, "output_mix")[row];
        for (size_t j = 0; j < n; ++j) a_r[i][j] = toy.own(site, "stream_mix")[row][static_cast<int64_t>(j)];
        if (!dynamic) continue;
        const at::Tensor normed = toy.at_site(site, "stream_norm", h[i]);
        const at::Tensor& w = toy.own(site, "dynamic.weight");
        const auto part = [&](size_t which) {
          const at::Tensor value = (normed * w[static_cast<int64_t>(which)]).sum(-1);
          return tanh ? at::tanh(value) : value;
        };
        const at::Tensor& s_a = toy.own(site, "mix_scale");
        a_m[i] = s_a * part(0) + a_m[i];
        for (size_t j = 0; j < n; ++j) a_r[i][j] = s_a * part(1 + j) + a_r[i][j];
        b[i] = toy.own(site, "output_scale") * part(n + 1) + b[i];
      }
      hyper_step(toy, site, h, a_m, a_r, b);
    }
    return summed(toy, h);
  };
}

TEST(HyperConnections, Equations) {
  expect_equation("hc(streams=2, dynamic=false)", hyper_connections(2, false, true));
  expect_equation("hc(streams=3, dynamic=false)", hyper_connections(3, false, true));
  expect_equation("hc", hyper_connections(4, true, true));
  expect_equation("hc(streams=2)", hyper_connections(2, true, true));
  expect_equation("hc(streams=2, tanh=false)", hyper_connections(2, true, false));
  expect_equation("hc(streams=1)", hyper_connections(1, true, true));
}

enum class Res { sinkhorn, identity, permutations };

// H_res[j][i], what stream j takes from stream i. logit: a_res raw + b_res, in the order of phi's rows.
std::vector<Tensors> stream_matrix(Res res, size_t n, int iterations, const std::function<at::Tensor(size_t)>& logit) {
  std::vector<Tensors> matrix(n, Tensors(n, at::zeros({}, at::kDouble)));
  if (res == Res::identity) {
    for (size_t i = 0; i < n; ++i) matrix[i][i] = at::ones({}, at::kDouble);
    return matrix;
  }
  if (res == Res::permutations) {
    std::vector<size_t> goes_to(n);
    std::iota(goes_to.begin(), goes_to.end(), 0);
    std::vector<std::vector<size_t>> all;
    do all.push_back(goes_to);
    while (std::next_permutation(goes_to.begin(), goes_to.end()));
    at::Tensor sum = at::exp(logit(0));
    for (size_t r = 1; r < all.size(); ++r) sum = sum + at::exp(logit(r));
    for (size_t r = 0; r < all.size(); ++r) {
      for (size_t i = 0; i < n; ++i) matrix[all[r][i]][i] = matrix[all[r][i]][i] + at::exp(logit(r)) / sum;
    }
    return matrix;
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) matrix[i][j] = at::exp(logit(i * n + j));
  }
  for (int round = 0; round < iterations; ++round) {
    for (size_t j = 0; j < n; ++j) {
      at::Tensor sum = matrix[0][j];
      for (size_t i = 1; i < n; ++i) sum = sum + matrix[i][j];
      for (size_t i = 0; i < n; ++i) matrix[i][j] = matrix[i][j] / sum;
    }
    for (auto& row : matrix) {
      at::Tensor sum = row[0];
      for (size_t j = 1; j < n; ++j) sum = sum + row[j];
      for (auto& value : row) value = value / sum;
    }
  }
  return matrix;
}

Equation manifold_hyper_connections(size_t n, int iterations, Res res = Res::sinkhorn) {
  return [=](const Toy& toy, const at::Tensor& e) {
    Tensors x(n, e);
    for (size_t site = 0; site < toy.depth(); ++site) {
      const at::Tensor v = at::cat(x, -1);
      const at::Tensor r = ((v * v).sum(-1) / static_cast<double>(v.size(-1)) + toy.norm.eps).sqrt();
      const at::Tensor& phi = toy.own(site, "mix.weight");
      const at::Tensor& a = toy.own(site, "mix_scale");
      const auto raw = [&](size_t which) { return (v * phi[static_cast<int64_t>(which)]).sum(-1) / r; };
      Tensors pre, post;
      for (size_t i = 0; i < n; ++i) {
        const auto row = static_cast<int64_t>(i);
        pre.push_back(1 / (1 + at::exp(-(a[0] * raw(i) + toy.own(site, "pre_bias")[row]))));
        post.push_back(2 / (1 + at::exp(-(a[1] * raw(n + i) + toy.own(site, "post_bias")[row]))));
      }
      const auto logit = [&](size_t which) {
        return a[2] * raw(2 * n + which) + toy.own(site, "res_bias").flatten()[static_cast<int64_t>(which)];
      };
      const std::vector<Tensors> matrix = stream_matrix(res, n, iterations, logit);
      std::vector<Tensors> given(n, Tensors(n));
      for (size_t i = 0; i < n; ++i) {
        for (size_t j = 0; j < n; ++j) given[i][j] = matrix[j][i];
      }
      hyper_step(toy, site, x, pre, given, post);
    }
    return summed(toy, x);
  };
}

TEST(ManifoldHyperConnections, Equations) {
  expect_equation("mhc", manifold_hyper_connections(4, 20));
  expect_equation("mhc(streams=2, init=xavier)", manifold_hyper_connections(2, 20));
  expect_equation("mhc(streams=3, iterations=3)", manifold_hyper_connections(3, 3));
}

TEST(ManifoldHyperConnections, EquationsOfOtherMatrices) {
  expect_equation("mhc(res=identity)", manifold_hyper_connections(4, 0, Res::identity));
  expect_equation("mhc(streams=2, res=identity, init=xavier)", manifold_hyper_connections(2, 0, Res::identity));
  expect_equation("mhc(res=permutations)", manifold_hyper_connections(4, 0, Res::permutations));
  expect_equation("mhc(streams=3, res=permutations)", manifold_hyper_connections(3, 0, Res::permutations));
  expect_equation("mhc(streams=2, res=permutations)", manifold_hyper_connections(2, 0, Res::permutations));
}

// Of two streams such a matrix is (1-t, t; t, 1-t) with t from 0 to 1, and the weights of the two permutations are 1-t,
// t.
TEST(ManifoldHyperConnections, PermutationsOfTwoStreamsReachEveryDoublyStochasticMatrix) {
  const auto logarithm = [](double x) { return x > 0 ? std::log(x) : -1e4; };  // of which exp is 0
  for (const double t : {0.0, 0.1, 0.5, 0.75, 1.0}) {
    const Toy toy("mhc(streams=2, res=permutations)", 3, 6, {});
    const c10::NoGradGuard no_grad;
    for (size_t site = 0; site < toy.depth(); ++site) {
      toy.own(site, "mix_scale").zero_();  // the biases alone decide
      toy.own(site, "res_bias").copy_(at::tensor({logarithm(1 - t), logarithm(t)}, at::kDouble));
    }
    const at::Tensor e = randn({2, 5, 6}, 3);
    const std::vector<Tensors> matrix = {{at::tensor(1 - t, at::kDouble), at::tensor(t, at::kDouble)},
                                         {at::tensor(t, at::kDouble), at::tensor(1 - t, at::kDouble)}};
    Tensors x(2, e);
    for (size_t site = 0; site < toy.depth(); ++site) {
      const at::Tensor pre = 1 / (1 + at::exp(-toy.own(site, "pre_bias")));
      const at::Tensor post = 2 / (1 + at::exp(-toy.own(site, "post_bias")));
      hyper_step(toy, site, x, {pre[0], pre[1]}, matrix, {post[0], post[1]});
    }
    testing::expect_relative(toy.run(e), summed(toy, x), 1e-12, "t = " + std::to_string(t));
  }
}

// More streams than the fused passes take. A gradient of these 120 weights is a sum of many terms that cancel, so it is
// compared to a coarser bound than elsewhere.
TEST(ManifoldHyperConnections, EquationOfFiveStreamsAndTheirPermutations) {
  const Toy toy("mhc(streams=5, res=permutations)", 2, 6, {});
  const at::Tensor e = testing::leaf(randn({2, 3, 6}, 3));
  const at::Tensor got = toy.run(e);
  const at::Tensor wanted = manifold_hyper_connections(5, 0, Res::permutations)(toy, e);
  testing::expect_relative(got, wanted, 1e-12, "output");
  const auto leaves = toy.leaves(e);
  const auto got_gradients = testing::gradients(got, leaves);
  const auto wanted_gradients = testing::gradients(wanted, leaves);
  for (size_t i = 0; i < leaves.size(); ++i) {
    testing::expect_relative(got_gradients[i], wanted_gradients[i], 1e-9, "leaf " + std::to_string(i), 10);
  }
}

TEST(HyperConnections, StartAsPreNorm) {
  const nn::NormSpec spec{.eps = 1e-12};  // the factor n of the sum leaves through the final norm up to eps
  const Toy pre("pre", 3, 6, spec, false, true);
  const at::Tensor e = randn({2, 5, 6}, 3);
  for (const char* const scheme : {"hc", "hc(streams=2)", "hc(dynamic=false)", "hc(streams=1, dynamic=false)"}) {
    const Toy hc(scheme, 3, 6, spec, false, true);
    testing::expect_relative(hc.run(e), pre.run(e), 1e-10, scheme);
  }
}

TEST(HyperConnections, InitialValuesAndKinds) {
  const Toy hc("hc(streams=4)", 3, 6, {}, false, true);
  for (size_t site = 0; site < 6; ++site) {
    const auto one_hot = at::zeros({4}, at::kDouble);
    one_hot[static_cast<int64_t>(site % 4)] = 1;
    testing::expect_same_bits(hc.own(site, "input_mix"), one_hot, "A_m");
    testing::expect_same_bits(hc.own(site, "stream_mix"), at::eye(4, at::kDouble), "A_r");
    testing::expect_same_bits(hc.own(site, "output_mix"), at::ones({4}, at::kDouble), "B");
    testing::expect_same_bits(hc.own(site, "dynamic.weight"), at::zeros({6, 6}, at::kDouble), "W");
    EXPECT_EQ(hc.own(site, "mix_scale").item<double>(), 0.01);
    EXPECT_EQ(hc.own(site, "output_scale").item<double>(), 0.01);
  }
  // Linear decays by default, scalar does not.
  for (const auto& parameter : hc.parameters.list()) {
    const bool norm = parameter.name.find("norm") != std::string::npos;
    const bool weight = parameter.name.ends_with("dynamic.weight");
    EXPECT_EQ(parameter.kind, norm     ? nn::ParameterKind::norm
                              : weight ? nn::ParameterKind::linear
                                       : nn::ParameterKind::scalar)
        << parameter.name;
  }
}

TEST(ManifoldHyperConnections, InitialValuesAndKinds) {
  const Toy single("mhc", 3, 6, {}, false, true);
  for (size_t site = 0; site < 6; ++site) {
    const auto pre = at::full({4}, -3.0, at::kDouble);
    pre[static_cast<int64_t>(site % 4)] = 3;
    testing::expect_same_bits(single.own(site, "pre_bias"), pre, "b_pre");
    testing::expect_same_bits(single.own(site, "post_bias"), at::zeros({4}, at::kDouble), "b_post");
    testing::expect_same_bits(single.own(site, "res_bias"), 6 * at::eye(4, at::kDouble) - 3, "b_res");
    testing::expect_same_bits(single.own(site, "mix.weight"), at::zeros({24, 24}, at::kDouble), "phi");
    testing::expect_same_bits(single.own(site, "mix_scale"), at::full({3}, 0.01, at::kDouble), "a");
  }
  const Toy xavier("mhc(init=xavier)", 3, 6, {}, false, true);
  for (const char* const name : {"pre_bias", "post_bias", "res_bias"}) {
    EXPECT_EQ(xavier.own(2, name).abs().max().item<double>(), 0) << name;
  }
  const at::Tensor& phi = xavier.own(2, "mix.weight");
  const double limit = std::sqrt(6.0 / (24 + 24));
  EXPECT_LE(phi.abs().max().item<double>(), limit);
  EXPECT_NEAR(phi.std().item<double>(), limit / std::sqrt(3.0), 0.02);
  EXPECT_NEAR(phi.mean().item<double>(), 0, 0.03);
  for (const auto& parameter : single.parameters.list()) {
    if (parameter.name.ends_with("mix.weight")) {
      EXPECT_EQ(parameter.kind, nn::ParameterKind::linear) << parameter.name;
    }
    if (parameter.name.ends_with("bias") || parameter.name.ends_with("mix_scale")) {
      EXPECT_EQ(parameter.kind, nn::ParameterKind::scalar) << parameter.name;
    }
  }
}

TEST(ManifoldHyperConnections, InitialValuesOfOtherMatrices) {
  const Toy identity("mhc(res=identity)", 3, 6, {}, false, true);
  EXPECT_EQ(identity.own(1, "mix.weight").sizes(), (std::vector<int64_t>{8, 24}));
  EXPECT_EQ(identity.own(1, "mix_scale").numel(), 2);
  EXPECT_EQ(identity.parameters.find("site1.res_bias"), nullptr);
  const Toy permutations("mhc(res=permutations)", 3, 6, {}, false, true);
  EXPECT_EQ(permutations.own(1, "mix.weight").sizes(), (std::vector<int64_t>{32, 24}));
  EXPECT_EQ(permutations.own(1, "mix_scale").numel(), 3);
  at::Tensor bias = at::full({24}, -8.0, at::kDouble);
  bias[0] = 0;
  testing::expect_same_bits(permutations.own(1, "res_bias"), bias, "b_res");
  const Toy even("mhc(res=permutations, init=xavier)", 3, 6, {}, false, true);
  EXPECT_EQ(testing::largest(even.own(1, "res_bias")), 0);
  for (const auto* const toy : {&identity, &permutations}) {
    for (size_t site = 0; site < 6; ++site) {
      auto pre = at::full({4}, -3.0, at::kDouble);
      pre[static_cast<int64_t>(site % 4)] = 3;
      testing::expect_same_bits(toy->own(site, "pre_bias"), pre, "b_pre");
      EXPECT_EQ(testing::largest(toy->own(site, "post_bias")), 0);
      EXPECT_EQ(testing::largest(toy->own(site, "mix.weight")), 0);
    }
  }
}

}  // namespace
}  // namespace siamese::residual
