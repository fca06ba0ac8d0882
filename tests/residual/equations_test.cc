// Each scheme against its published equations, written out by hand in double precision.
#include "tests/residual/harness.h"

namespace siamese::residual {
namespace {

size_t depth(const Toy& toy) { return static_cast<size_t>(2 * toy.blocks); }

TEST(Equations, Pre) {
  expect_equation("pre", [](const Toy& toy, const at::Tensor& e) {
    at::Tensor h = e;
    for (size_t i = 0; i < depth(toy); ++i) h = h + toy.sublayer(i, toy.at_site(i, "norm", h));
    return toy.normed("close.norm", h);
  });
}

TEST(Equations, Post) {
  const auto body = [](const Toy& toy, const at::Tensor& e) {
    at::Tensor x = e;
    for (size_t i = 0; i < depth(toy); ++i) x = toy.at_site(i, "norm", x + toy.sublayer(i, x));
    return x;
  };
  expect_equation("post", [&](const Toy& toy, const at::Tensor& e) { return toy.normed("close.norm", body(toy, e)); });
  expect_equation("post(final_norm=false)", body);
}

TEST(Equations, Hybrid) {
  expect_equation("hybrid", [](const Toy& toy, const at::Tensor& e) {
    at::Tensor x = e;
    for (size_t i = 0; i < depth(toy); i += 2) {
      const at::Tensor y = x + toy.sublayer(i, x);
      const at::Tensor z = toy.at_site(i + 1, "norm", y);
      x = z + toy.sublayer(i + 1, z);
    }
    return toy.normed("close.norm", x);
  });
}

TEST(Equations, HybridWithAPreNormFirstBlock) {
  expect_equation("hybrid(first=pre)", [](const Toy& toy, const at::Tensor& e) {
    at::Tensor x = e;
    for (size_t i = 0; i < depth(toy); i += 2) {
      if (i == 0) {
        const at::Tensor y = x + toy.sublayer(0, toy.at_site(0, "norm", x));
        x = y + toy.sublayer(1, toy.at_site(1, "norm", y));
        continue;
      }
      const at::Tensor y = x + toy.sublayer(i, x);
      const at::Tensor z = toy.at_site(i + 1, "norm", y);
      x = z + toy.sublayer(i + 1, z);
    }
    return toy.normed("close.norm", x);
  });
}

// The published DeiT file, with its two auxiliaries and the divisor as options.
at::Tensor siamese_read_form(const Toy& toy, const at::Tensor& e, bool input_norm, bool final_norm,
                             const std::function<double(double block, double site)>& divisor) {
  at::Tensor u = e;
  at::Tensor y = e;
  for (size_t i = 0; i < depth(toy); ++i) {
    const at::Tensor x = toy.at_site(i, "x_norm", u);
    const at::Tensor merged = x + toy.at_site(i, "y_norm", y);
    const at::Tensor z = toy.sublayer(i, input_norm ? toy.at_site(i, "input_norm", merged) : merged);
    u = x + z / divisor(static_cast<double>(i / 2), static_cast<double>(i));
    y = y + z;
  }
  const at::Tensor sum = toy.normed("close.x_norm", u) + toy.normed("close.y_norm", y);
  return final_norm ? toy.normed("close.norm", sum) : sum;
}

TEST(Equations, SiameseReadFormWithEveryOption) {
  const auto block = [](double l, double) { return std::sqrt(2 * (l + 1)); };
  const auto sublayer = [](double, double i) { return std::sqrt(i + 1); };
  const auto layer = [](double l, double) { return std::sqrt(l + 1); };
  const auto none = [](double, double) { return 1.0; };
  expect_equation("siamese",
                  [&](const Toy& t, const at::Tensor& e) { return siamese_read_form(t, e, true, true, block); });
  expect_equation("siamese(input_norm=false)",
                  [&](const Toy& t, const at::Tensor& e) { return siamese_read_form(t, e, false, true, block); });
  expect_equation("siamese(final_norm=false)",
                  [&](const Toy& t, const at::Tensor& e) { return siamese_read_form(t, e, true, false, block); });
  expect_equation("siamese(depth_scale=sublayer)",
                  [&](const Toy& t, const at::Tensor& e) { return siamese_read_form(t, e, true, true, sublayer); });
  expect_equation("siamese(depth_scale=layer)",
                  [&](const Toy& t, const at::Tensor& e) { return siamese_read_form(t, e, true, true, layer); });
  expect_equation("siamese(input_norm=false, depth_scale=none, final_norm=false)",
                  [&](const Toy& t, const at::Tensor& e) { return siamese_read_form(t, e, false, false, none); });
}

// The published language-model file (hybrid_pre): q, k, v norms are attention's own and no part of the toy.
TEST(Equations, SiameseHybrid) {
  const auto equation = [](const Toy& toy, const at::Tensor& e, bool input_norm) {
    at::Tensor x = e;
    at::Tensor y = e;
    for (size_t i = 0; i < depth(toy); i += 2) {
      const double c = std::sqrt(2.0 * static_cast<double>(i / 2 + 1));
      const at::Tensor m = toy.parameter("site" + std::to_string(i) + ".x_scale") * x + toy.at_site(i, "y_norm", y);
      const at::Tensor a = toy.sublayer(i, m);
      x = x + a / c;
      y = y + a;
      x = toy.at_site(i + 1, "x_norm", x);
      const at::Tensor merged = x + toy.at_site(i + 1, "y_norm", y);
      const at::Tensor o = toy.sublayer(i + 1, input_norm ? toy.at_site(i + 1, "input_norm", merged) : merged);
      y = y + o;
      x = x + o / c;
    }
    return toy.normed("close.norm", toy.normed("close.x_norm", x) + toy.normed("close.y_norm", y));
  };
  expect_equation("siamese(x=hybrid)", [&](const Toy& t, const at::Tensor& e) { return equation(t, e, true); });
  expect_equation("siamese(x=hybrid, input_norm=false)",
                  [&](const Toy& t, const at::Tensor& e) { return equation(t, e, false); });
}

TEST(Equations, InitialGainsAreOneAndC1IsOne) {
  nn::Parameters parameters(1);
  const nn::Scope root(parameters);
  const Build build{.width = 8, .blocks = 2, .norm = {}};
  const auto topology = make_topology("siamese(x=hybrid)", root.child("close"), build);
  const auto attention = topology->junction(root.child("a"), site_at(0, 2));
  const auto ffn = topology->junction(root.child("f"), site_at(1, 2));
  for (const auto& parameter : parameters.list()) {
    EXPECT_TRUE(at::equal(parameter.value, at::ones({8}))) << parameter.name;
    EXPECT_EQ(parameter.kind, nn::ParameterKind::norm) << parameter.name;  // c1 decays with the norms
  }
  EXPECT_NE(parameters.find("a.x_scale"), nullptr);
  EXPECT_EQ(parameters.find("f.x_scale"), nullptr);
  EXPECT_EQ(parameters.find("a.x_norm.weight"), nullptr);
}

TEST(Equations, SchemesHintTheNormsInsideAttention) {
  nn::Parameters parameters(1);
  const nn::Scope root(parameters);
  const Build build{.width = 8, .blocks = 2, .norm = {}};
  int scope = 0;
  const auto hint = [&](const std::string& scheme) {
    return make_topology(scheme, root.child(std::to_string(scope++)), build)->attention_norm(site_at(0, 2));
  };
  EXPECT_EQ(hint("pre"), nn::AttentionNorm::none);
  EXPECT_EQ(hint("post"), nn::AttentionNorm::none);
  EXPECT_EQ(hint("hybrid"), nn::AttentionNorm::qkv);
  EXPECT_EQ(hint("hybrid(first=pre)"), nn::AttentionNorm::qkv);
  EXPECT_EQ(hint("siamese"), nn::AttentionNorm::none);
  EXPECT_EQ(hint("siamese(x=hybrid)"), nn::AttentionNorm::qkv);
}

// Modulated families (DiT): the norm that makes the branch input has no gain, and close leaves out the whole-result
// norm.
TEST(Equations, ModulatedFamilies) {
  const nn::NormSpec spec{.kind = nn::NormKind::layer, .eps = 1e-6, .bias = true};
  const Toy pre("pre", 3, 6, spec, true);
  EXPECT_TRUE(pre.parameters.list().empty());
  const Toy siamese("siamese", 3, 6, spec, true);
  EXPECT_EQ(siamese.parameters.find("close.norm.weight"), nullptr);
  EXPECT_EQ(siamese.parameters.find("site0.input_norm.weight"), nullptr);
  const at::Tensor e = randn({1, 2, 6}, 3);
  const auto block = [](double l, double) { return std::sqrt(2 * (l + 1)); };
  testing::expect_close(siamese.run(e), siamese_read_form(siamese, e, true, false, block), 1e-12, "modulated siamese");
}

TEST(Equations, GateScalesTheBranchOnItsWayToEveryStream) {
  const Toy toy("siamese", 3, 6, {.eps = 1e-5});
  const at::Tensor e = randn({2, 3, 6}, 9);
  const at::Tensor gate = randn({2, 1, 6}, 10);
  at::Tensor u = e;
  at::Tensor y = e;
  for (size_t i = 0; i < 6; ++i) {
    const at::Tensor x = toy.at_site(i, "x_norm", u);
    const at::Tensor z = gate * toy.sublayer(i, toy.at_site(i, "input_norm", x + toy.at_site(i, "y_norm", y)));
    u = x + z / std::sqrt(2.0 * static_cast<double>(i / 2 + 1));
    y = y + z;
  }
  const at::Tensor wanted = toy.normed("close.norm", toy.normed("close.x_norm", u) + toy.normed("close.y_norm", y));
  testing::expect_close(toy.run(e, nullptr, gate), wanted, 1e-12, "gated siamese");
}

}  // namespace
}  // namespace siamese::residual
