// What is done with a trained model, on the stand-in device and on the CPU: the same.
#include "tests/support/protected_device.h"
#include "tests/support/tensors.h"
#include "tests/train/tiny_run.h"

#include "siamese/eval/difference.h"
#include "siamese/eval/generate.h"
#include "siamese/eval/probe.h"
#include "siamese/eval/samples.h"
#include "siamese/train/checkpoint.h"
#include "siamese/train/upcycle.h"

namespace siamese::train {
namespace {

// A run of two steps, loaded here and there.
class Uses : public ::testing::Test {
 protected:
  const ops::ModeGuard plain_{ops::Mode::plain};

  void train(const std::string& family, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"train.steps=2", "engine.ops=plain", "eval.samples=0"});
    start_run(family == "lm" ? tiny_config({more.begin(), more.end() - 1}) : tiny_family(family, more), folder_ / "run",
              true, "", {});
  }
  LoadedModel load(const at::Device& device) const {
    return load_model(folder_ / "run", Weights::trained, at::kFloat, 0, device);
  }

  const TemporaryFolder folder_{"device_uses"};
};

std::vector<int64_t> generated(const LoadedModel& loaded) {
  std::vector<int64_t> tokens;
  eval::generate(dynamic_cast<const models::LanguageModel&>(*loaded.model), {1, 2, 3},
                 {.max_tokens = 8, .temperature = 0.8, .seed = 4}, [&](int64_t token) {
                   tokens.push_back(token);
                   return true;
                 });
  return tokens;
}

TEST_F(Uses, Generation) {
  for (const std::string scheme : {"pre", "siamese", "mhc"}) {
    train("lm", {"model.residual=" + scheme});
    EXPECT_EQ(generated(load(testing::protected_device())), generated(load(at::kCPU))) << scheme;
  }
  train("moe");
  EXPECT_EQ(generated(load(testing::protected_device())), generated(load(at::kCPU)));
}

TEST_F(Uses, Sampling) {
  train("dit");
  const auto there = load(testing::protected_device()), here = load(at::kCPU);
  for (const auto kind : {eval::SamplerKind::ddim, eval::SamplerKind::ddpm}) {
    const eval::SamplerOptions options{
        .kind = kind, .steps = 3, .guidance = 2, .eta = kind == eval::SamplerKind::ddim ? 0.5 : 0};
    const auto drawn = [&](const LoadedModel& loaded) {
      return eval::draw_samples(dynamic_cast<const models::DiffusionTransformer&>(*loaded.model), {0, 2}, 5, 3,
                                options);
    };
    testing::expect_same_bits(drawn(there), drawn(here), std::string(enum_text(kind)));
    EXPECT_NO_THROW(eval::image_grid(drawn(there)));
  }
}

TEST_F(Uses, SamplesAreJudged) {
  train("vit");
  const auto there = load(testing::protected_device()), here = load(at::kCPU);
  const RunConfig& config = here.config;
  const auto held_out = data::open_batches(config.data, data::Split::test, sample_shape(config.model), 0);
  const at::Tensor images = testing::randn({6, 3, 16, 16}, 3, at::kFloat);
  const auto judged = [&](const LoadedModel& loaded) {
    return eval::judge_samples(dynamic_cast<const models::VisionTransformer&>(*loaded.model), images, {0, 1}, *held_out,
                               4, 8);
  };
  EXPECT_EQ(judged(there).feature_distance, judged(here).feature_distance);
  EXPECT_EQ(judged(there).class_agreement, judged(here).class_agreement);
}

void expect_same_probe(const models::Model& there, const models::Model& here, const models::Inputs& inputs) {
  const eval::ProbeOptions options{.gradients = true, .activations = true};
  const auto got = eval::probe(there, inputs, options), wanted = eval::probe(here, inputs, options);
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].name, wanted[i].name);
    testing::expect_same_bits(got[i].value.cpu(), wanted[i].value, got[i].name);
  }
}

TEST_F(Uses, Probe) {
  for (const auto& [family, scheme] : {std::pair{"lm", "siamese"}, std::pair{"moe", "mhc"}, std::pair{"vit", "siamese"},
                                       std::pair{"vit", "hc"}, std::pair{"dit", "siamese"}}) {
    SCOPED_TRACE(std::string(family) + " " + scheme);
    train(family, {std::string("model.residual=") + scheme});
    const auto there = load(testing::protected_device()), here = load(at::kCPU);
    const models::ModelConfig& config = here.config.model;
    models::Inputs inputs;
    if (config.sees_images()) {
      inputs.images = testing::randn({2, config.channels, config.image, config.image}, 5, at::kFloat);
      inputs.labels = at::arange(2, at::kLong);
      inputs.timesteps = at::arange(2, at::kLong) * 700;
      const int64_t channels = config.channels * (config.learn_sigma ? 2 : 1);
      inputs.targets = config.family == models::Family::dit
                           ? testing::randn({2, channels, config.image, config.image}, 6, at::kFloat)
                           : at::Tensor();
    } else {
      inputs.tokens = at::arange(14, at::kLong).view({2, 7}) % config.vocab;
    }
    expect_same_probe(*there.model, *here.model, inputs);
  }
}

TEST_F(Uses, Upcycling) {
  train("lm", {"model.residual=pre"});
  const auto upcycled = [&](const LoadedModel& source) {
    const Upcycled result = upcycle(source, "siamese");
    EXPECT_EQ(result.model->parameters().options().device(), source.model->parameters().options().device());
    const auto test = data::open_batches(source.config.data, data::Split::test, sample_shape(source.config.model), 0);
    return eval::difference(dynamic_cast<const models::LanguageModel&>(*source.model),
                            dynamic_cast<const models::LanguageModel&>(*result.model), *test, 2, 4);
  };
  const auto there = upcycled(load(testing::protected_device())), here = upcycled(load(at::kCPU));
  EXPECT_EQ(there.max_logit, here.max_logit);
  EXPECT_EQ(there.loss_after, here.loss_after);
}

}  // namespace
}  // namespace siamese::train
