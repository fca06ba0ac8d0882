// Factors on what the branches of each block write (StackOptions::branch_scales): the gate of every scheme.
#include <cmath>
#include <functional>

#include "tests/models/small_families.h"
#include "tests/support/errors.h"

#include "siamese/ops/operand.h"

namespace siamese::models {
namespace {

const std::vector<double> kScales = {0.3, 0, 0.75};

// A stack of three blocks in double over G_i(x) = tanh(x W_i), with random gains, and its equation by hand.
struct ToyStack {
  explicit ToyStack(const std::string& scheme)
      : stack(nn::Scope(parameters), scheme, {.width = kWidth, .blocks = 3, .norm = {.eps = 1e-5}}) {
    const c10::NoGradGuard no_grad;
    uint64_t seed = 40;
    for (const auto& parameter : parameters.list()) {
      parameter.value.copy_(1 + 0.4 * testing::randn(parameter.value.sizes(), ++seed));
    }
    for (uint64_t i = 0; i < 6; ++i) weights.push_back(testing::leaf(testing::randn({kWidth, kWidth}, 60 + i)));
  }

  at::Tensor run(const StackOptions& options) const {
    const auto sublayer = [this](const residual::Site& site, const at::Tensor& x, const std::vector<at::Tensor>&,
                                 const std::vector<at::Tensor>&) {
      return SublayerOutput{.branch = {branch(static_cast<size_t>(site.index), x), {}}};
    };
    return stack(embedding, sublayer, options).hidden;
  }

  at::Tensor branch(size_t site, const at::Tensor& x) const { return at::tanh(x.matmul(weights[site])); }
  // alpha of the site's block times what its branch computed.
  at::Tensor written(size_t site, const at::Tensor& value) const { return kScales[site / 2] * value; }
  at::Tensor rms(const std::string& name, const at::Tensor& x) const {
    const auto* const gain = parameters.find(name + ".weight");
    EXPECT_NE(gain, nullptr) << name;
    return gain->value * x / ((x * x).sum(-1, true) / static_cast<double>(kWidth) + 1e-5).sqrt();
  }
  at::Tensor at_site(size_t site, const std::string& name, const at::Tensor& x) const {
    return rms(residual::junction_name(residual::site_at(static_cast<int64_t>(site), 3)) + "." + name, x);
  }

  static constexpr int64_t kWidth = 7;
  nn::Parameters parameters{5, at::kDouble};
  Stack stack;
  std::vector<at::Tensor> weights;
  at::Tensor embedding = testing::leaf(testing::randn({2, 5, kWidth}, 3) * 1.7);
};

using ToyEquation = std::function<at::Tensor(const ToyStack&, at::Tensor)>;

void expect_toy_equation(const std::string& scheme, const ToyEquation& equation) {
  const ToyStack toy(scheme);
  const at::Tensor got = toy.run({.branch_scales = kScales});
  const at::Tensor wanted = equation(toy, toy.embedding);
  testing::expect_relative(got, wanted, 1e-13, scheme);
  std::vector<at::Tensor> leaves = toy.weights;
  leaves.push_back(toy.embedding);
  for (const auto& parameter : toy.parameters.list()) leaves.push_back(parameter.value);
  const auto got_gradients = testing::gradients(got, leaves);
  const auto wanted_gradients = testing::gradients(wanted, leaves);
  for (size_t i = 0; i < leaves.size(); ++i) {
    const std::string what = scheme + " gradient " + std::to_string(i);
    ASSERT_TRUE(got_gradients[i].defined() && wanted_gradients[i].defined()) << what;
    testing::expect_relative(got_gradients[i], wanted_gradients[i], 1e-11, what);
  }
}

TEST(BranchScales, Pre) {
  expect_toy_equation("pre", [](const ToyStack& t, at::Tensor h) {
    for (size_t i = 0; i < 6; ++i) h = h + t.written(i, t.branch(i, t.at_site(i, "norm", h)));
    return t.rms("close.norm", h);
  });
}

TEST(BranchScales, Post) {
  expect_toy_equation("post", [](const ToyStack& t, at::Tensor x) {
    for (size_t i = 0; i < 6; ++i) x = t.at_site(i, "norm", x + t.written(i, t.branch(i, x)));
    return t.rms("close.norm", x);
  });
}

// Before the factor of the residual, not after it.
TEST(BranchScales, DeepNorm) {
  expect_toy_equation("deepnorm", [](const ToyStack& t, at::Tensor x) {
    for (size_t i = 0; i < 6; ++i) x = t.at_site(i, "norm", std::pow(6.0, 0.25) * x + t.written(i, t.branch(i, x)));
    return x;
  });
}

// After the output norm, which would take the factor out.
TEST(BranchScales, Sandwich) {
  expect_toy_equation("sandwich", [](const ToyStack& t, at::Tensor h) {
    for (size_t i = 0; i < 6; ++i) {
      h = h + t.written(i, t.at_site(i, "output_norm", t.branch(i, t.at_site(i, "input_norm", h))));
    }
    return t.rms("close.norm", h);
  });
}

// Both streams get it, X before its divisor of depth.
TEST(BranchScales, Siamese) {
  expect_toy_equation("siamese", [](const ToyStack& t, at::Tensor e) {
    at::Tensor u = e, y = e;
    for (size_t i = 0; i < 6; ++i) {
      const at::Tensor x = t.at_site(i, "x_norm", u);
      const at::Tensor o = t.written(i, t.branch(i, t.at_site(i, "input_norm", x + t.at_site(i, "y_norm", y))));
      u = x + o / std::sqrt(2.0 * static_cast<double>(i / 2 + 1));
      y = y + o;
    }
    return t.rms("close.norm", t.rms("close.x_norm", u) + t.rms("close.y_norm", y));
  });
}

TEST(BranchScales, NothingOfABranchLeavesPreNormTheNormOfTheEmbedding) {
  const ToyStack toy("pre");
  const at::Tensor got = toy.run({.branch_scales = {0, 0, 0}});
  testing::expect_relative(got, toy.rms("close.norm", toy.embedding), 1e-14, "final norm of the embedding");
}

TEST(BranchScales, OfAnotherNumberOfBlocksAreRefused) {
  const ToyStack toy("pre");
  testing::expect_error<UsageError>(
      [&] {
        toy.run({.branch_scales = {1, 1}});
      },
      {"branch_scales", "expected 3, one for each block", "got 2"});
}

// What a scheme without an output norm writes is linear in the last projection of a branch; a dit's in its gate.
void scale_what_is_written(const Model& model, const ModelConfig& config) {
  const c10::NoGradGuard no_grad;
  for (const auto& parameter : model.parameters().list()) {
    const std::string& name = parameter.name;
    const int64_t block = model.block_of(parameter);
    if (config.family == Family::dit) {
      if (name.find(".modulation.") == std::string::npos || !name.starts_with("blocks.")) continue;
      const double scale = kScales[static_cast<size_t>(name[7] - '0')];
      for (const int64_t part : {2, 5}) parameter.value.narrow(0, part * config.width, config.width).mul_(scale);
    } else if ((name.find(".out.") != std::string::npos || name.ends_with(".out")) && block >= 0) {
      parameter.value.mul_(kScales[static_cast<size_t>(block)]);
    }
  }
}

TEST(BranchScales, OfEveryFamilyAreThoseOfWhatItsBranchesEndIn) {
  for (const Family family : all_families()) {
    for (const std::string scheme : {"pre", "post", "siamese", "hc", "attn_res(block=1)"}) {
      ModelConfig config = small_family(family, scheme);
      config.drop_path = family == Family::vit ? 0.3 : 0;
      const std::string what = case_name(family, scheme);
      const auto model = make_small(config, 1, at::kDouble);
      const auto folded = make_small(config, 1, at::kDouble);
      perturb(*model);
      perturb(*folded);
      scale_what_is_written(*folded, config);
      const Inputs inputs = family_inputs(config, 3, 2);
      LossOptions options = family_options(config, 3);
      const auto wanted = loss_and_gradients(*folded, inputs, options);
      options.stack.branch_scales = kScales;
      const auto got = loss_and_gradients(*model, inputs, options);
      EXPECT_NEAR(got.first, wanted.first, 1e-12 * std::abs(wanted.first)) << what;
      EXPECT_NE(got.first, loss_and_gradients(*model, inputs, family_options(config, 3)).first) << what;
      double terms = 0;  // a mixing weight before a norm has a gradient of 0 that is a sum of such
      for (const auto& gradient : wanted.second) {
        if (gradient.defined()) terms = std::max(terms, testing::largest(gradient));
      }
      // What comes before the factor has the same gradient; of the end itself it has the factor.
      for (size_t i = 0; i < wanted.second.size(); ++i) {
        const auto& parameter = model->parameters().list()[i];
        if (!at::equal(parameter.value, folded->parameters().list()[i].value)) continue;
        if (!wanted.second[i].defined()) continue;
        testing::expect_relative(got.second[i], wanted.second[i], 1e-10, what + " " + parameter.name, terms);
      }
    }
  }
}

TEST(BranchScales, OnesAndNoneAreThePlainSchemeToTheBit) {
  for (const Family family : all_families()) {
    for (const auto& scheme : schemes_of(family)) {
      const ModelConfig config = small_family(family, scheme);
      const auto model = make_small(config);
      const Inputs inputs = family_inputs(config, 2, 2);
      LossOptions options = family_options(config, 2);
      const auto plain = loss_and_gradients(*model, inputs, options);
      options.stack.branch_scales = {1, 1, 1};
      const auto ones = loss_and_gradients(*model, inputs, options);
      EXPECT_EQ(plain.first, ones.first) << case_name(family, scheme);
      for (size_t i = 0; i < plain.second.size(); ++i) {
        testing::expect_same_bits(ones.second[i], plain.second[i], case_name(family, scheme));
      }
    }
  }
}

TEST(BranchScales, RecomputedSegmentsGiveTheSameBitsInBothPrecisions) {
  for (const ops::Precision precision : {ops::Precision::float32, ops::Precision::bfloat16}) {
    const ops::PrecisionGuard guard(precision);
    for (const Family family : all_families()) {
      for (const auto& scheme : schemes_of(family)) {
        const ModelConfig config = small_family(family, scheme);
        const auto model = make_small(config);
        perturb(*model);
        const Inputs inputs = family_inputs(config, 2, 2);
        LossOptions options = family_options(config, 2);
        options.stack.branch_scales = kScales;
        const auto kept = loss_and_gradients(*model, inputs, options);
        options.stack.recompute_every = 2;
        const auto again = loss_and_gradients(*model, inputs, options);
        EXPECT_EQ(kept.first, again.first) << case_name(family, scheme);
        for (size_t i = 0; i < kept.second.size(); ++i) {
          testing::expect_same_bits(again.second[i], kept.second[i], case_name(family, scheme));
          EXPECT_TRUE(kept.second[i].isfinite().all().item<bool>()) << case_name(family, scheme);
        }
      }
    }
  }
}

// A model that is built with factors has them in every pass that is given none, cached generation included.
TEST(BranchScales, AModelThatIsBuiltWithThemHasThemInEveryPass) {
  const c10::NoGradGuard no_grad;
  ModelConfig config = small_config("siamese");
  const auto plain = make_lm(config, 1, at::kDouble);
  config.branch_scales = kScales;
  const auto scaled = make_lm(config, 1, at::kDouble);
  const Inputs inputs = random_inputs(config, 2, 2);
  const at::Tensor wanted = plain->hidden(inputs.tokens.narrow(1, 0, 6), {.branch_scales = kScales});
  testing::expect_same_bits(scaled->hidden(inputs.tokens.narrow(1, 0, 6)), wanted, "hidden");
  EXPECT_FALSE(at::equal(plain->hidden(inputs.tokens.narrow(1, 0, 6)), wanted));
  EXPECT_EQ(scaled->losses(inputs, {}).loss.item<double>(),
            plain->losses(inputs, {.stack = {.branch_scales = kScales}}).loss.item<double>());
  LmCache cache = scaled->make_cache(2, 12);
  scaled->hidden(inputs.tokens.narrow(1, 0, 5), {}, &cache);
  testing::expect_relative(scaled->hidden(inputs.tokens.narrow(1, 5, 1), {}, &cache), wanted.narrow(1, 5, 1), 1e-12,
                           "after cached keys and values");
}

}  // namespace
}  // namespace siamese::models
