// SiameseNorm in every published form against its equations, written out by hand in double precision.
#include "tests/residual/harness.h"

namespace siamese::residual {
namespace {

// The published DeiT file, with its two auxiliaries and the divisor as options.
at::Tensor siamese_read_form(const Toy& toy, const at::Tensor& e, bool input_norm, bool final_norm,
                             const std::function<double(double block, double site)>& divisor) {
  at::Tensor u = e;
  at::Tensor y = e;
  for (size_t i = 0; i < toy.depth(); ++i) {
    const at::Tensor x = toy.at_site(i, "x_norm", u);
    const at::Tensor merged = x + toy.at_site(i, "y_norm", y);
    const at::Tensor z = toy.sublayer(i, input_norm ? toy.at_site(i, "input_norm", merged) : merged);
    u = x + z / divisor(static_cast<double>(i / 2), static_cast<double>(i));
    y = y + z;
  }
  const at::Tensor sum = toy.normed("close.x_norm", u) + toy.normed("close.y_norm", y);
  return final_norm ? toy.normed("close.norm", sum) : sum;
}

TEST(SiameseEquations, SiameseReadFormWithEveryOption) {
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

// Algorithm 1 of the paper, with its two auxiliaries and a norm on the merged sum as options.
at::Tensor siamese_write_form(const Toy& toy, const at::Tensor& e, bool input_norm, bool depth_scale, bool final_norm) {
  at::Tensor x = e;
  at::Tensor y = e;
  for (size_t i = 0; i < toy.depth(); ++i) {
    const at::Tensor merged = x + toy.at_site(i, "y_norm", y);
    const at::Tensor o = toy.sublayer(i, input_norm ? toy.at_site(i, "input_norm", merged) : merged);
    x = toy.at_site(i, "x_norm", x + o / (depth_scale ? std::sqrt(2.0 * static_cast<double>(i / 2 + 1)) : 1.0));
    y = y + o;
  }
  const at::Tensor sum = x + toy.normed("close.y_norm", y);
  return final_norm ? toy.normed("close.norm", sum) : sum;
}

TEST(SiameseEquations, SiameseWriteForm) {
  expect_equation("siamese(form=write, input_norm=false, depth_scale=none)",
                  [](const Toy& toy, const at::Tensor& e) { return siamese_write_form(toy, e, false, false, false); });
  expect_equation("siamese(form=write)",
                  [](const Toy& toy, const at::Tensor& e) { return siamese_write_form(toy, e, true, true, false); });
  expect_equation("siamese(form=write, input_norm=false, final_norm=true)",
                  [](const Toy& toy, const at::Tensor& e) { return siamese_write_form(toy, e, false, true, true); });
}

// The published language-model file (hybrid_pre): q, k, v norms are attention's own and no part of the toy.
TEST(SiameseEquations, SiameseHybrid) {
  const auto equation = [](const Toy& toy, const at::Tensor& e, bool input_norm, bool depth_scale, bool final_norm) {
    at::Tensor x = e;
    at::Tensor y = e;
    for (size_t i = 0; i < toy.depth(); i += 2) {
      const double c = depth_scale ? std::sqrt(2.0 * static_cast<double>(i / 2 + 1)) : 1;
      const at::Tensor m = toy.own(i, "x_scale") * x + toy.at_site(i, "y_norm", y);
      const at::Tensor a = toy.sublayer(i, m);
      x = x + a / c;
      y = y + a;
      x = toy.at_site(i + 1, "x_norm", x);
      const at::Tensor merged = x + toy.at_site(i + 1, "y_norm", y);
      const at::Tensor o = toy.sublayer(i + 1, input_norm ? toy.at_site(i + 1, "input_norm", merged) : merged);
      y = y + o;
      x = x + o / c;
    }
    const at::Tensor sum = toy.normed("close.x_norm", x) + toy.normed("close.y_norm", y);
    return final_norm ? toy.normed("close.norm", sum) : sum;
  };
  expect_equation("siamese(x=hybrid)",
                  [&](const Toy& t, const at::Tensor& e) { return equation(t, e, true, true, true); });
  expect_equation("siamese(x=hybrid, input_norm=false)",
                  [&](const Toy& t, const at::Tensor& e) { return equation(t, e, false, true, true); });
  expect_equation("siamese(x=hybrid, depth_scale=none, final_norm=false)",
                  [&](const Toy& t, const at::Tensor& e) { return equation(t, e, true, false, false); });
}

// Modulated families (DiT): the norm that makes the branch input has no gain, and close leaves out the whole-result
// norm.
TEST(SiameseEquations, ModulatedFamilies) {
  const nn::NormSpec spec{.kind = nn::NormKind::layer, .eps = 1e-6, .bias = true};
  const Toy pre("pre", 3, 6, spec, true);
  EXPECT_TRUE(pre.parameters.list().empty());
  const Toy siamese("siamese", 3, 6, spec, true);
  EXPECT_EQ(siamese.parameters.find("close.norm.weight"), nullptr);
  EXPECT_EQ(siamese.parameters.find("site0.input_norm.weight"), nullptr);
  const at::Tensor e = randn({1, 2, 6}, 3);
  const auto block = [](double l, double) { return std::sqrt(2 * (l + 1)); };
  testing::expect_relative(siamese.run(e), siamese_read_form(siamese, e, true, false, block), 1e-12,
                           "modulated siamese");
}

TEST(SiameseEquations, GateScalesTheBranchOnItsWayToEveryStream) {
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
  testing::expect_relative(toy.run(e, nullptr, gate), wanted, 1e-12, "gated siamese");
}

// gain_x: every P and c1; gain_y: every Q. The norms of the sum start at 1, shifts at 0.
TEST(SiameseEquations, GainsStartWhereTheyAreTold) {
  const nn::NormSpec spec{.kind = nn::NormKind::layer, .eps = 1e-6, .bias = true};
  for (const char* const form :
       {"", "x=hybrid, ", "form=write, ", "form=write, input_norm=false, depth_scale=none, "}) {
    const std::string scheme = "siamese(" + std::string(form) + "gain_x=0.25, gain_y=3)";
    const Toy toy(scheme, 3, 6, spec, false, /*fresh=*/true);
    int of_x = 0, of_y = 0;
    for (const auto& [name, kind, value, matrices] : toy.parameters.list()) {
      const bool x = name.ends_with("x_norm.weight") || name.ends_with("x_scale");
      const bool y = name.ends_with("y_norm.weight");
      of_x += x ? 1 : 0;
      of_y += y ? 1 : 0;
      const double wanted = name.ends_with("bias") ? 0 : (x ? 0.25 : (y ? 3 : 1));
      EXPECT_EQ(testing::largest_difference(value, at::full_like(value, wanted)), 0) << scheme << " " << name;
    }
    EXPECT_EQ(of_x, std::string(form).find("write") != std::string::npos ? 6 : 7) << scheme;
    EXPECT_EQ(of_y, 7) << scheme;
  }
}

TEST(SiameseEquations, WithAGainOfZeroOnXItStartsAsPreNorm) {
  const at::Tensor e = randn({2, 5, 6}, 3);
  const Toy siamese("siamese(input_norm=false, final_norm=false, gain_x=0)", 3, 6, {}, false, true);
  const Toy pre("pre", 3, 6, {}, false, true);
  testing::expect_same_bits(siamese.run(e), pre.run(e), "pre");
}

}  // namespace
}  // namespace siamese::residual
