// lambda, denseformer, orthogonal and mv_split against their equations, written out by hand in double precision, and
// how they start. (The variants of mhc: hyper_connections_test.cc.)
#include "tests/residual/harness.h"

namespace siamese::residual {
namespace rival_equations {

at::Tensor pre_site(const Toy& toy, size_t i, const at::Tensor& h) {
  return h + toy.sublayer(i, toy.at_site(i, "norm", h));
}

constexpr size_t kNoMark = 99;

// After which block of three, and of four, c is the state.
Equation lambda_equation(bool x0, bool embed_norm, size_t of_three, size_t of_four) {
  return [=](const Toy& toy, const at::Tensor& embedding) {
    const size_t marked = toy.blocks == 3 ? of_three : of_four;
    const at::Tensor e = embed_norm ? toy.normed("open.norm", embedding) : embedding;
    at::Tensor h = e;
    at::Tensor c;
    for (size_t i = 0; i < toy.depth(); i += 2) {
      h = toy.own(i, "scale") * h;
      if (x0) h = h + toy.own(i, "x0_scale") * e;
      h = pre_site(toy, i + 1, pre_site(toy, i, h));
      if (i / 2 == marked) c = h;
    }
    if (c.defined()) h = h - toy.parameter("close.backout") * c;
    return toy.normed("close.norm", h);
  };
}

TEST(RivalEquations, Lambda) {
  expect_equation("lambda", lambda_equation(true, true, 1, 2));
  expect_equation("lambda(backout=none)", lambda_equation(true, true, kNoMark, kNoMark));
  expect_equation("lambda(x0=false)", lambda_equation(false, true, 1, 2));
  expect_equation("lambda(embed_norm=false)", lambda_equation(true, false, 1, 2));
  expect_equation("lambda(backout=0)", lambda_equation(true, true, 0, 0));
  expect_equation("lambda(backout=0.9)", lambda_equation(true, true, 2, 3));  // the last block: c is h itself
  expect_equation("lambda(x0=false, backout=none, embed_norm=false)", lambda_equation(false, false, kNoMark, kNoMark));
}

Equation denseformer_equation(size_t dilation, size_t period) {
  return [=](const Toy& toy, const at::Tensor& e) {
    std::vector<at::Tensor> y = {e};
    at::Tensor x = e;
    for (size_t n = 1; n <= toy.depth() / 2; ++n) {
      const size_t ffn = 2 * n - 1;
      y.push_back(pre_site(toy, ffn, pre_site(toy, ffn - 1, x)));
      x = y.back();
      if (n % period != 0) continue;
      x = at::zeros_like(e);
      int64_t weight = 0;
      for (size_t j = 0; j <= n; ++j) {
        if ((n - j) % dilation == 0) x = x + toy.own(ffn, "mix")[weight++] * y[j];
      }
      EXPECT_EQ(weight, toy.own(ffn, "mix").numel());
    }
    return toy.normed("close.norm", x);
  };
}

TEST(RivalEquations, DenseFormer) {
  expect_equation("denseformer", denseformer_equation(1, 1));
  expect_equation("denseformer(dilation=2)", denseformer_equation(2, 1));
  expect_equation("denseformer(period=2)", denseformer_equation(1, 2));
  expect_equation("denseformer(dilation=2, period=2)", denseformer_equation(2, 2));
  expect_equation("denseformer(dilation=3, period=2)", denseformer_equation(3, 2));
  expect_equation("denseformer(dilation=9)", denseformer_equation(9, 1));
}

// So many outputs that an average takes several passes.
TEST(RivalEquations, DenseFormerOfNineBlocks) {
  for (const auto& [text, dilation, period] :
       {std::tuple{"denseformer", 1, 1}, std::tuple{"denseformer(dilation=2, period=3)", 2, 3}}) {
    const Toy toy(text, 9, 6, {});
    {
      const c10::NoGradGuard no_grad;  // a mean of ten outputs, so that nothing grows from average to average
      for (size_t i = 0; i < toy.depth(); ++i) {
        if (const auto* const mix = toy.parameters.find("site" + std::to_string(i) + ".mix")) mix->value.mul_(0.2);
      }
    }
    const at::Tensor e = testing::leaf(randn({2, 3, 6}, 3));
    const at::Tensor got = toy.run(e);
    const at::Tensor wanted = denseformer_equation(static_cast<size_t>(dilation), static_cast<size_t>(period))(toy, e);
    testing::expect_relative(got, wanted, 1e-12, text);
    const auto leaves = toy.leaves(e);
    const auto got_gradients = testing::gradients(got, leaves);
    const auto wanted_gradients = testing::gradients(wanted, leaves);
    for (size_t i = 0; i < leaves.size(); ++i) {
      ASSERT_TRUE(wanted_gradients[i].defined()) << text << " leaf " << i;
      testing::expect_relative(got_gradients[i], wanted_gradients[i], 1e-10, text + (" leaf " + std::to_string(i)));
    }
  }
}

TEST(RivalEquations, Orthogonal) {
  const auto equation = [](bool whole_sample) {
    return [=](const Toy& toy, const at::Tensor& e) {
      at::Tensor h = e;
      const auto dot = [&](const at::Tensor& a, const at::Tensor& b) {
        const at::Tensor of_tokens = (a * b).sum(-1, true);
        return whole_sample ? of_tokens.sum(1, true) : of_tokens;
      };
      for (size_t i = 0; i < toy.depth(); ++i) {
        const at::Tensor o = toy.sublayer(i, toy.at_site(i, "norm", h));
        h = h + o - dot(h, o) / (dot(h, h) + 1e-6) * h;
      }
      return toy.normed("close.norm", h);
    };
  };
  expect_equation("orthogonal", equation(false));
  expect_equation("orthogonal(over=sample)", equation(true));
}

TEST(RivalEquations, MvSplit) {
  const auto written = [](const Toy& toy, size_t i, const at::Tensor& h, const at::Tensor& u) {
    const at::Tensor mean_u = u.sum(1, true) / static_cast<double>(u.size(1));
    const at::Tensor mean_h = h.sum(1, true) / static_cast<double>(h.size(1));
    return h + toy.own(i, "beta") * (u - mean_u) + toy.own(i, "alpha") * (mean_u - mean_h);
  };
  expect_equation("mv_split", [&](const Toy& toy, const at::Tensor& e) {
    at::Tensor h = toy.normed("open.norm", e);
    for (size_t i = 0; i < toy.depth(); ++i) h = toy.at_site(i, "norm", written(toy, i, h, toy.sublayer(i, h)));
    return h;
  });
  expect_equation("mv_split(norm=pre)", [&](const Toy& toy, const at::Tensor& e) {
    at::Tensor h = e;
    for (size_t i = 0; i < toy.depth(); ++i) {
      h = written(toy, i, h, toy.sublayer(i, toy.at_site(i, "norm", h)));
    }
    return toy.normed("close.norm", h);
  });
}

// None of them has a norm of the branch: a gate is a factor on what the sublayer gave.
TEST(RivalEquations, AGateMultipliesTheBranch) {
  for (const char* const scheme :
       {"lambda", "denseformer", "denseformer(dilation=2, period=2)", "orthogonal", "orthogonal(over=sample)",
        "mhc(res=identity)", "mhc(res=permutations)", "mv_split", "mv_split(norm=pre)"}) {
    const Toy toy(scheme, 3, 6, {});
    const at::Tensor e = randn({2, 5, 6}, 3);
    for (const auto& gate : {randn({2, 1, 6}, 4), randn({2, 1, 1}, 4)}) {
      Streams streams = toy.topology->open(e);
      for (size_t i = 0; i < toy.depth(); ++i) {
        const ReadResult read = toy.junctions[i]->read(streams, nullptr);
        streams = toy.junctions[i]->write(read.streams, {gate * toy.sublayer(i, read.branch_input), {}});
      }
      testing::expect_relative(toy.run(e, nullptr, gate), toy.topology->close(streams), 1e-13, scheme);
    }
  }
}

TEST(RivalStarts, Lambda) {
  const Toy toy("lambda", 3, 6, {}, false, true);
  const double scales[] = {1.15, 1.10, 1.05};
  const double x0_scales[] = {0.20, 0.125, 0.05};
  for (size_t block = 0; block < 3; ++block) {
    EXPECT_NEAR(toy.own(2 * block, "scale").item<double>(), scales[block], 1e-15);
    EXPECT_NEAR(toy.own(2 * block, "x0_scale").item<double>(), x0_scales[block], 1e-15);
    EXPECT_EQ(toy.parameters.find("site" + std::to_string(2 * block + 1) + ".scale"), nullptr);
  }
  EXPECT_EQ(toy.parameter("close.backout").item<double>(), 0.2);
  const Toy one("lambda", 1, 6, {}, false, true);
  EXPECT_EQ(one.own(0, "scale").item<double>(), 1.15);
  EXPECT_EQ(one.own(0, "x0_scale").item<double>(), 0.20);
  for (const char* const name : {"site0.scale", "site0.x0_scale", "close.backout"}) {
    EXPECT_EQ(toy.parameters.find(name)->kind, nn::ParameterKind::scalar) << name;
  }
}

TEST(RivalStarts, DenseFormer) {
  const Toy toy("denseformer(dilation=2)", 4, 6, {}, false, true);
  for (const auto& [site, count] : {std::pair{1, 1}, std::pair{3, 2}, std::pair{5, 2}, std::pair{7, 3}}) {
    at::Tensor wanted = at::zeros({count}, at::kDouble);
    wanted[count - 1] = 1;
    testing::expect_same_bits(toy.own(static_cast<size_t>(site), "mix"), wanted, "alpha");
    EXPECT_EQ(toy.parameters.find("site" + std::to_string(site) + ".mix")->kind, nn::ParameterKind::stream_mix);
  }
  EXPECT_EQ(toy.parameters.find("site0.mix"), nullptr);
}

TEST(RivalStarts, MvSplit) {
  const Toy toy("mv_split", 2, 6, {}, false, true);
  for (size_t i = 0; i < toy.depth(); ++i) {
    testing::expect_same_bits(toy.own(i, "alpha"), at::zeros({6}, at::kDouble), "alpha");
    testing::expect_same_bits(toy.own(i, "beta"), at::full({6}, 0.03, at::kDouble), "beta");
  }
  EXPECT_EQ(toy.parameters.find("site0.alpha")->kind, nn::ParameterKind::scalar);
  EXPECT_EQ(toy.parameters.find("site0.beta")->kind, nn::ParameterKind::scalar);
}

// Streams are carried as long as something reads them.
TEST(RivalStarts, StreamsComeAndGo) {
  using Names = std::vector<std::string>;
  const auto names_after = [](const char* scheme, size_t sites) {
    const Toy toy(scheme, 5, 6, {});
    Names names;
    for (const auto& stream : toy.run_sites(toy.topology->open(randn({1, 2, 6}, 3)), 0, sites).list) {
      names.push_back(stream.name);
    }
    return names;
  };
  EXPECT_EQ(names_after("lambda", 6), (Names{"h", "e"}));
  EXPECT_EQ(names_after("lambda", 7), (Names{"h", "e", "c"}));  // after block 2 of 5
  EXPECT_EQ(names_after("lambda(x0=false)", 10), (Names{"h", "c"}));
  EXPECT_EQ(names_after("lambda(backout=none)", 10), (Names{"h", "e"}));
  EXPECT_EQ(names_after("denseformer", 4), (Names{"h", "y0", "y1", "y2"}));
  EXPECT_EQ(names_after("denseformer", 10), (Names{"h"}));
  EXPECT_EQ(names_after("denseformer(dilation=2, period=2)", 2), (Names{"h", "y0"}));
  EXPECT_EQ(names_after("denseformer(dilation=2, period=2)", 4), (Names{"h", "y0", "y2"}));
  EXPECT_EQ(names_after("denseformer(dilation=2, period=2)", 8), (Names{"h"}));
  EXPECT_EQ(names_after("denseformer(dilation=3, period=2)", 2), (Names{"h", "y1"}));
}

}  // namespace rival_equations
}  // namespace siamese::residual
