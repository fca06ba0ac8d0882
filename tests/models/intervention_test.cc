// A pass that is changed on its way: what is left out contributes nothing, what is replaced is what goes on.
#include "siamese/models/intervention.h"

#include <functional>

#include "tests/models/small_families.h"
#include "tests/support/schemes.h"

#include "siamese/base/check.h"

namespace siamese::models {
namespace {
namespace intervening {

class Changed : public Intervention {
 public:
  size_t first_site() const override { return first; }
  residual::Streams between(size_t next, residual::Streams streams) override {
    places.push_back(next);
    kept.push_back(streams);
    return change ? change(next, streams) : streams;
  }
  at::Tensor input(const residual::Site&, at::Tensor input) override { return input * factor; }
  bool leaves_out(const residual::Site& site) override { return out && out(site); }

  size_t first = 0;
  double factor = 1;
  std::function<residual::Streams(size_t, const residual::Streams&)> change;
  std::function<bool(const residual::Site&)> out;
  std::vector<size_t> places;
  std::vector<residual::Streams> kept;
};

// Nothing 0 or 1: gates of a dit and gains would hide what they multiply.
std::unique_ptr<Model> worn(const ModelConfig& config, at::ScalarType dtype = at::kFloat) {
  auto model = make_small(config, 1, dtype);
  const at::NoGradGuard no_grad;
  uint64_t seed = 100;
  for (const auto& parameter : model->parameters().list()) {
    parameter.value.add_((testing::randn(parameter.value.sizes(), seed++) * 0.1).to(dtype));
  }
  return model;
}

Inputs given(const ModelConfig& config) {
  Inputs inputs = family_inputs(config, 2, 3);
  if (inputs.tokens.defined()) inputs.tokens = inputs.tokens.narrow(1, 0, config.context);
  if (config.family == Family::dit) inputs.timesteps = at::tensor({10, 700}, at::kLong);
  return inputs;
}

TEST(Intervention, ThatChangesNothingAndItsHalvesAreThePass) {
  for (const Family family : all_families()) {
    for (const std::string& scheme : schemes_of(family)) {
      const ModelConfig config = small_family(family, scheme);
      const auto model = worn(config);
      Inputs inputs = given(config);
      const at::NoGradGuard no_grad;
      Changed inert;
      const at::Tensor state = model->state(inputs, {});
      testing::expect_same_bits(model->state(inputs, {.intervention = &inert}), state, case_name(family, scheme));
      EXPECT_EQ(inert.places, (std::vector<size_t>{0, 1, 2, 3, 4, 5, 6}));
      const at::Tensor output = model->read_out(state, inputs);
      if (family == Family::dit) inputs.targets = at::zeros_like(output);
      testing::expect_same_bits(model->pass(inputs, {}).output, output, case_name(family, scheme));
    }
  }
}

// From the streams that another pass left, the rest is the same bits.
TEST(Intervention, BeginsInTheMiddle) {
  for (const std::string& scheme : testing::causal_schemes()) {
    const ModelConfig config = small_config(scheme);
    const auto model = worn(config);
    const Inputs inputs = given(config);
    const at::NoGradGuard no_grad;
    Changed keep;
    const at::Tensor state = model->state(inputs, {.intervention = &keep});
    for (size_t first = 0; first <= 6; ++first) {
      Changed rest;
      rest.first = first;
      rest.change = [&](size_t next, const residual::Streams& streams) {
        return next == first ? keep.kept[first] : streams;
      };
      testing::expect_same_bits(model->state(inputs, {.intervention = &rest}), state, scheme);
      EXPECT_EQ(rest.places.size(), 7 - first);
    }
  }
}

// The direct way: the sublayer's last projection is zero.
void silence(const Model& model, const residual::Site& site) {
  const at::NoGradGuard no_grad;
  const std::string sublayer = "blocks." + std::to_string(site.block) + "." + std::string(enum_text(site.kind)) + ".";
  for (const auto& parameter : model.parameters().list()) {
    const bool last = parameter.name.find(".out") != std::string::npos;
    if (parameter.name.starts_with(sublayer) && last) parameter.value.zero_();
  }
}

TEST(Intervention, WhatIsLeftOutIsASublayerThatGivesZero) {
  for (const Family family : all_families()) {
    for (const std::string& scheme : schemes_of(family)) {
      // There a norm of the branch has a bias, which a branch of zeros would leave.
      const bool output_norm = scheme == "peri" || scheme == "olmo2" || scheme == "sandwich";
      if (output_norm && ModelConfig{.family = family}.sees_images()) continue;
      const ModelConfig config = small_family(family, scheme);
      const Inputs inputs = given(config);
      for (const int64_t index : {0, 3, 5}) {
        const residual::Site site = residual::site_at(index, config.blocks);
        const auto model = worn(config, at::kDouble);
        const at::NoGradGuard no_grad;
        Changed changed;
        changed.out = [&](const residual::Site& at) { return at.index == index; };
        const at::Tensor got = model->state(inputs, {.intervention = &changed});
        const at::Tensor whole = model->state(inputs, {});
        silence(*model, site);
        testing::expect_relative(got, model->state(inputs, {}), 1e-12, case_name(family, scheme));
        // What post(final_norm=false) and its like write last is what a lens reads; all others see it too.
        EXPECT_GT(testing::largest_difference(got, whole), 1e-3) << case_name(family, scheme) << " " << index;
      }
    }
  }
}

// Whatever norm the scheme has on its branches: without any, the embedding is all there is.
TEST(Intervention, NothingIsLeftOfABranchBehindANormWithABias) {
  for (const char* const scheme : {"pre", "peri", "olmo2", "sandwich"}) {
    const ModelConfig config = small_family(Family::vit, scheme);
    const auto model = worn(config, at::kDouble);
    const at::NoGradGuard no_grad;
    Changed changed;
    changed.out = [](const residual::Site&) { return true; };
    const at::Tensor got = model->state(given(config), {.intervention = &changed});
    testing::expect_relative(got, model->stack().topology().lens(changed.kept.front()), 1e-12, scheme);
  }
}

TEST(Intervention, ReplacesInputsAndStreams) {
  const ModelConfig config = small_config("siamese");
  const auto model = worn(config, at::kDouble);
  const Inputs inputs = given(config);
  const at::NoGradGuard no_grad;
  Changed zero;
  zero.change = [](size_t next, const residual::Streams& streams) {
    return next < 6 ? streams : residual::without(residual::flush(streams), 0);
  };
  const at::Tensor got = model->state(inputs, {.intervention = &zero});
  testing::expect_relative(got, model->stack().topology().lens(zero.kept.back(), 1), 1e-12, "Y alone");
  Changed halved;
  halved.factor = 0.5;
  EXPECT_GT(testing::largest_difference(model->state(inputs, {.intervention = &halved}), model->state(inputs, {})),
            1e-3);
}

TEST(Intervention, LeavesOutExpertsAndKnowsNoRecomputation) {
  const ModelConfig config = small_family(Family::moe, "pre");
  const auto model = worn(config);
  Changed changed;
  changed.out = [](const residual::Site& site) { return site.kind == residual::SiteKind::ffn; };
  const Inputs inputs = family_inputs(config, 2, 3);
  EXPECT_TRUE(std::isfinite(model->losses(inputs, {.stack = {.intervention = &changed}}).loss.item<double>()));
  EXPECT_THROW(model->losses(inputs, {.stack = {.recompute_every = 1, .intervention = &changed}}), UsageError);
}

}  // namespace intervening
}  // namespace
}  // namespace siamese::models
