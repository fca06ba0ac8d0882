// dyt and derf as model.norm: what they learn and how it starts, every family under several schemes.
#include <filesystem>

#include "tests/models/small_families.h"
#include "tests/support/errors.h"

#include "siamese/models/parts.h"
#include "siamese/models/weights.h"
#include "siamese/ops/operand.h"

namespace siamese::models {
namespace {

constexpr nn::NormKind kElementWise[] = {nn::NormKind::dyt, nn::NormKind::derf};

template <class Check>
void for_every_kind(const Check& check) {
  for (const Family family : all_families()) {
    for (const std::string scheme :
         {"pre", "post", "sandwich", "siamese", "siamese(x=hybrid)", "hc", "attn_res(block=1)"}) {
      for (const nn::NormKind kind : kElementWise) {
        ModelConfig config = small_family(family, scheme);
        config.norm = kind;
        check(config, case_name(family, scheme) + " " + std::string(enum_text(kind)));
      }
    }
  }
}

TEST(NormKinds, EveryParameterLearnsAndRecomputationChangesNoBit) {
  for_every_kind([](const ModelConfig& config, const std::string& name) {
    const auto model = make_small(config);
    perturb(*model);
    const Inputs inputs = family_inputs(config, 3, 2);
    LossOptions options = family_options(config, 3);
    options.training = false;  // a hidden label would leave its row without a gradient
    for (const ops::Precision precision : {ops::Precision::bfloat16, ops::Precision::float32}) {
      const ops::PrecisionGuard guard(precision);
      options.stack.recompute_every = 0;
      const auto kept = loss_and_gradients(*model, inputs, options);
      EXPECT_TRUE(std::isfinite(kept.first)) << name;
      options.stack.recompute_every = 2;
      const auto again = loss_and_gradients(*model, inputs, options);
      EXPECT_EQ(kept.first, again.first) << name;
      for (size_t i = 0; i < kept.second.size(); ++i) {
        const std::string what = name + " " + model->parameters().list()[i].name;
        ASSERT_TRUE(kept.second[i].defined()) << what;
        EXPECT_TRUE(kept.second[i].isfinite().all().item<bool>()) << what;
        EXPECT_GT(kept.second[i].abs().max().item<double>(), 0) << what;
        testing::expect_same_bits(again.second[i], kept.second[i], what);
      }
    }
  });
}

TEST(NormKinds, SaveAndLoadKeepEveryBit) {
  const auto path = std::filesystem::temp_directory_path() / "siamese_norm_kinds_test.safetensors";
  for_every_kind([&](const ModelConfig& config, const std::string& name) {
    const auto model = make_small(config, 1), other = make_small(config, 2);
    perturb(*model);
    save_tensors(path, named_values(model->parameters()), {});
    load_tensors(path, named_values(other->parameters()));
    for (size_t i = 0; i < model->parameters().list().size(); ++i) {
      testing::expect_same_bits(other->parameters().list()[i].value, model->parameters().list()[i].value, name);
    }
  });
  std::filesystem::remove(path);
}

// A run opens with this line (tests/train/run_loop_test.cc).
TEST(NormKinds, ASchemeThatNeedsATrueNormSaysSo) {
  const auto note = [](const std::string& scheme, nn::NormKind kind) {
    ModelConfig config = small_config(scheme);
    config.norm = kind;
    return norm_note(config);
  };
  for (const std::string scheme : {"deepnorm", "keel", "hc", "mhc", "attn_res", "attn_res(block=1)"}) {
    EXPECT_EQ(note(scheme, nn::NormKind::rms), "") << scheme;
    EXPECT_EQ(note(scheme, nn::NormKind::layer), "") << scheme;
    for (const nn::NormKind kind : kElementWise) {
      const std::string begin = "model.norm (" + std::string(enum_text(kind)) +
                                ") does not take out the size of its input: with " + scheme + " ";
      const bool factor = scheme == "deepnorm" || scheme == "keel";
      const std::string lost = factor ? "nothing divides its factor" : "it does not start as Pre-Norm";
      EXPECT_EQ(note(scheme, kind).substr(0, begin.size() + lost.size()), begin + lost);
    }
  }
  for (const std::string scheme : {"pre", "post", "siamese", "siamese(x=hybrid)", "lambda"}) {
    EXPECT_EQ(note(scheme, nn::NormKind::dyt), "") << scheme;
  }
}

// A float model with inputs far out of its range: nothing overflows, forward or backward.
TEST(NormKinds, StreamsOfTenThousandStayFinite) {
  for (const ops::Precision precision : {ops::Precision::float32, ops::Precision::bfloat16}) {
    const ops::PrecisionGuard guard(precision);
    for (const std::string scheme : {"pre", "siamese", "post"}) {
      for (const nn::NormKind kind : kElementWise) {
        ModelConfig config = small_config(scheme);
        config.norm = kind;
        config.tied = false;
        const auto model = make_lm(config);
        {
          const c10::NoGradGuard no_grad;
          model->parameters().find("embedding.weight")->value.mul_(1e4 / 0.2);
        }
        const auto made = loss_and_gradients(*model, random_inputs(config, 2, 3), {.normalizer = 24});
        EXPECT_TRUE(std::isfinite(made.first)) << scheme;
        for (const auto& gradient : made.second) EXPECT_TRUE(gradient.isfinite().all().item<bool>()) << scheme;
      }
    }
  }
}

TEST(NormKinds, WhatTheyLearnStartsAsPublished) {
  ModelConfig config = small_config("pre");
  config.norm = nn::NormKind::derf;
  config.bias = true;
  config.norm_alpha = 0.8;
  const auto model = make_model(config, {}, 1);
  const auto expect_starts = [&](const std::string& name, nn::ParameterKind kind, std::vector<int64_t> shape,
                                 double value) {
    const auto* const found = model->parameters().find(name);
    ASSERT_NE(found, nullptr) << name;
    EXPECT_EQ(found->kind, kind) << name;
    EXPECT_EQ(found->value.sizes(), shape) << name;
    testing::expect_same_bits(found->value.detach(), at::full(shape, value, at::kFloat), name);
  };
  for (const std::string norm : {"blocks.1.ffn_junction.norm.", "close.norm."}) {
    expect_starts(norm + "weight", nn::ParameterKind::norm, {24}, 1);
    expect_starts(norm + "bias", nn::ParameterKind::norm, {24}, 0);
    expect_starts(norm + "alpha", nn::ParameterKind::scalar, {1}, 0.8);
    expect_starts(norm + "shift", nn::ParameterKind::scalar, {1}, 0);
  }
  config.norm = nn::NormKind::dyt;
  const auto dyt = make_model(config, {}, 1);
  EXPECT_EQ(dyt->parameters().find("close.norm.shift"), nullptr);
  EXPECT_EQ(ModelConfig().norm_alpha, 0.5);
}

// By hand, of three blocks of width 24: seven norms of an lm; of a dit the six that feed a branch and the last one keep
// what they learn beside gain and bias, and have neither.
TEST(NormKinds, ParametersByHand) {
  const auto norms_of = [](const ModelConfig& config) {
    return count_by_part(make_model(config, {}, 0, at::kMeta)->parameters())[static_cast<size_t>(ModelPart::norm)];
  };
  ModelConfig lm = small_config("pre");
  lm.norm = nn::NormKind::dyt;
  EXPECT_EQ(norms_of(lm), 7 * (24 + 1));
  lm.norm = nn::NormKind::derf;
  EXPECT_EQ(norms_of(lm), 7 * (24 + 2));
  lm.bias = true;
  EXPECT_EQ(norms_of(lm), 7 * (24 + 24 + 2));
  ModelConfig dit = small_family(Family::dit, "pre");
  EXPECT_EQ(norms_of(dit), 0);
  dit.norm = nn::NormKind::derf;
  EXPECT_EQ(norms_of(dit), 7 * 2);
}

// Norms in the sense of the word stay: of q, k and v, of hc's coefficients, of attn_res's keys.
TEST(NormKinds, NormsThatHaveToTakeOutTheSizeStay) {
  for (const char* const scheme : {"hc", "attn_res"}) {
    ModelConfig config = small_config(scheme);
    config.norm = nn::NormKind::dyt;
    config.attention_norm = AttentionNormChoice::qk;
    const auto model = make_model(config, {}, 0, at::kMeta);
    for (const auto& parameter : model->parameters().list()) {
      const bool stays = parameter.name.find("q_norm") != std::string::npos ||
                         parameter.name.find("stream_norm") != std::string::npos ||
                         parameter.name.find("key_norm") != std::string::npos;
      EXPECT_TRUE(!stays || parameter.name.ends_with(".weight")) << parameter.name;
    }
    EXPECT_NE(model->parameters().find("close.norm.alpha"), nullptr);
  }
}

}  // namespace
}  // namespace siamese::models
