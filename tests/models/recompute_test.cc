#include "siamese/models/recompute.h"

#include "tests/models/small_lm.h"
#include "tests/support/errors.h"

namespace siamese::models {
namespace {

TEST(Recompute, GivesTheSameBitsForEverySchemeAndSegmentLength) {
  for (const auto& scheme : testing::causal_schemes()) {
    const ModelConfig config = small_config(scheme);
    const auto model = make_lm(config);
    const Inputs inputs = random_inputs(config, 3, 2);
    const auto kept = loss_and_gradients(*model, inputs, {.normalizer = 36, .z_loss = 1e-3});
    for (const int64_t every : {1, 2, 3, 7}) {
      const auto again =
          loss_and_gradients(*model, inputs, {.stack = {.recompute_every = every}, .normalizer = 36, .z_loss = 1e-3});
      EXPECT_EQ(again.first, kept.first) << scheme;
      for (size_t i = 0; i < kept.second.size(); ++i) {
        testing::expect_same_bits(again.second[i], kept.second[i],
                                  std::string(scheme) + " " + model->parameters().list()[i].name);
      }
    }
  }
}

struct OneWeight {
  nn::Parameters parameters{2, at::kDouble};
  nn::Slot slot = nn::Scope(parameters).add("w", nn::ParameterKind::linear, {3}, nn::Init::normal(1, 0));

  SegmentParameters of_segment() const { return {parameters, {0}}; }
};

TEST(Recompute, TheSegmentRunsAgainInBackwardOnly) {
  int runs = 0;
  const at::Tensor x = testing::leaf(testing::randn({3}, 1));
  const OneWeight weight;
  const at::Tensor& w = weight.slot.value();
  const auto outputs = recompute(
      [&](const std::vector<at::Tensor>& in) {
        ++runs;
        return std::vector<at::Tensor>{in[0] * weight.slot.value(), in[0].sin()};
      },
      {x}, weight.of_segment());
  EXPECT_EQ(runs, 1);
  (outputs[0].sum() + outputs[1].sum()).backward();
  EXPECT_EQ(runs, 2);
  testing::expect_relative(x.grad(), w + x.cos(), 1e-15, "input gradient");
  testing::expect_relative(w.grad(), x, 1e-15, "parameter gradient");
}

TEST(Recompute, ParametersLearnWhenNoInputDoes) {
  const OneWeight weight;
  const auto outputs =
      recompute([&](const std::vector<at::Tensor>& in) { return std::vector<at::Tensor>{in[0] * weight.slot.value()}; },
                {testing::randn({3}, 1)}, weight.of_segment());
  outputs[0].sum().backward();
  testing::expect_relative(weight.slot.value().grad(), testing::randn({3}, 1), 1e-15, "parameter gradient");
}

// What the slots gave in forward is what backward computes with, whatever stands there by then.
TEST(Recompute, BackwardComputesWithTheTensorsOfForward) {
  const OneWeight weight;
  const at::Tensor given = testing::leaf(testing::randn({3}, 5));
  const at::Tensor product = given.sin();  // no leaf
  std::vector<at::Tensor> outputs;
  {
    const nn::ParameterGuard guard(weight.parameters, {product});
    outputs = recompute(
        [&](const std::vector<at::Tensor>& in) { return std::vector<at::Tensor>{in[0] * weight.slot.value().exp()}; },
        {testing::randn({3}, 1)}, weight.of_segment());
  }
  weight.parameters.set("w", testing::randn({3}, 6));
  const auto gradient = torch::autograd::grad({outputs[0].sum()}, {given})[0];
  testing::expect_relative(gradient, testing::randn({3}, 1) * given.sin().exp() * given.cos(), 1e-14, "gradient");
}

TEST(Recompute, ATensorWhoseGradientWouldBeLostIsAnError) {
  const OneWeight weight;
  const at::Tensor stray = testing::leaf(testing::randn({3}, 7));
  const auto outputs = recompute(
      [&](const std::vector<at::Tensor>& in) { return std::vector<at::Tensor>{in[0] * weight.slot.value() + stray}; },
      {testing::randn({3}, 1)}, weight.of_segment());
  testing::expect_error<UsageError>([&] { outputs[0].sum().backward(); }, {"recompute", "[3]"});
}

class CountStreams : public residual::Recorder {
 public:
  void stream(const residual::Site&, const std::string&, const at::Tensor&, const at::Tensor&) override { ++streams; }
  void branch(const residual::Site&, const at::Tensor&, const at::Tensor&) override { ++branches; }
  int streams = 0;
  int branches = 0;
};

TEST(Recompute, RecordsTheFirstPassOnly) {
  const ModelConfig config = small_config("siamese");
  const auto model = make_lm(config);
  CountStreams count;
  loss_and_gradients(*model, random_inputs(config, 2, 2), {.stack = {.recompute_every = 1, .recorder = &count}});
  EXPECT_EQ(count.streams, 12);
  EXPECT_EQ(count.branches, 6);
}

}  // namespace
}  // namespace siamese::models
