// HC and mHC against their equations, stream by stream, and how they start.
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

Equation manifold_hyper_connections(size_t n, int iterations) {
  return [=](const Toy& toy, const at::Tensor& e) {
    Tensors x(n, e);
    for (size_t site = 0; site < toy.depth(); ++site) {
      const at::Tensor v = at::cat(x, -1);
      const at::Tensor r = ((v * v).sum(-1) / static_cast<double>(v.size(-1)) + toy.norm.eps).sqrt();
      const at::Tensor& phi = toy.own(site, "mix.weight");
      const at::Tensor& a = toy.own(site, "mix_scale");
      const auto raw = [&](size_t which) { return (v * phi[static_cast<int64_t>(which)]).sum(-1) / r; };
      Tensors pre, post;
      std::vector<Tensors> matrix(n, Tensors(n));  // H_res[j][i]: what stream j takes from stream i
      for (size_t i = 0; i < n; ++i) {
        const auto row = static_cast<int64_t>(i);
        pre.push_back(1 / (1 + at::exp(-(a[0] * raw(i) + toy.own(site, "pre_bias")[row]))));
        post.push_back(2 / (1 + at::exp(-(a[1] * raw(n + i) + toy.own(site, "post_bias")[row]))));
        for (size_t j = 0; j < n; ++j) {
          const at::Tensor bias = toy.own(site, "res_bias")[row][static_cast<int64_t>(j)];
          matrix[i][j] = at::exp(a[2] * raw(2 * n + i * n + j) + bias);
        }
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

}  // namespace
}  // namespace siamese::residual
