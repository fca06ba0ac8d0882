// What is done with a trained model, on the stand-in device and on the CPU: the same.
#include "tests/eval/task_files.h"
#include "tests/support/protected_device.h"
#include "tests/support/tensors.h"
#include "tests/train/tiny_run.h"

#include <c10/core/GradMode.h>

#include "siamese/eval/analysis.h"
#include "siamese/eval/difference.h"
#include "siamese/eval/generate.h"
#include "siamese/eval/probe.h"
#include "siamese/eval/samples.h"
#include "siamese/eval/tasks.h"
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

// Prompts of other lengths; the ring of the cache turns more than once.
TEST_F(Uses, GenerationOfSeveralPastTheContext) {
  const auto made = [](const LoadedModel& loaded) {
    std::vector<std::vector<int64_t>> tokens(3);
    const eval::Sampling sampling{
        .max_tokens = 2 * loaded.config.model.context + 3, .temperature = 0.8, .top_p = 0.9, .seed = 4};
    EXPECT_EQ(eval::generate(dynamic_cast<const models::LanguageModel&>(*loaded.model), {{1, 2, 3}, {7}, {5, 5, 9, 2}},
                             sampling,
                             [&](size_t sequence, int64_t token) {
                               tokens[sequence].push_back(token);
                               return sequence != 1 || tokens[sequence].size() < 4;
                             }),
              eval::Ended::done);
    return tokens;
  };
  for (const auto& [family, scheme] : {std::pair{"lm", "siamese"}, std::pair{"lm", "hc"}, std::pair{"moe", "pre"}}) {
    SCOPED_TRACE(std::string(family) + " " + scheme);
    train(family, {std::string("model.residual=") + scheme});
    const auto here = made(load(at::kCPU));
    EXPECT_EQ(here[0].size(), here[2].size());
    EXPECT_EQ(here[1].size(), 4U);
    EXPECT_EQ(made(load(testing::protected_device())), here);
  }
}

TEST_F(Uses, Analysis) {
  for (const auto& [family, scheme] :
       {std::pair{"lm", "siamese"}, std::pair{"lm", "hc"}, std::pair{"lm", "attn_res"}, std::pair{"moe", "pre"},
        std::pair{"vit", "siamese"}, std::pair{"dit", "siamese"}}) {
    SCOPED_TRACE(std::string(family) + " " + scheme);
    train(family, {std::string("model.residual=") + scheme});
    const auto looked_at = [](const LoadedModel& loaded) {
      const auto test = data::open_held_out(loaded.config.data, sample_shape(loaded.config.model));
      return eval::analyze(*loaded.model, loaded.config.model, *test.front().batches,
                           {.samples = 6, .lens_tokens = 40, .changed_samples = 2});
    };
    const auto there = looked_at(load(testing::protected_device())), here = looked_at(load(at::kCPU));
    EXPECT_EQ(runs::to_json(there.record), runs::to_json(here.record));
    ASSERT_EQ(there.tensors.size(), here.tensors.size());
    for (size_t i = 0; i < here.tensors.size(); ++i) {
      // As integers: what a place has none of is NaN, which equals nothing.
      testing::expect_same_bits(there.tensors[i].value.cpu().contiguous().view(at::kInt),
                                here.tensors[i].value.contiguous().view(at::kInt), here.tensors[i].name);
    }
  }
}

struct Questions : eval::TaskFiles {
  using TaskFiles::folder;
  using TaskFiles::write_set;
  void TestBody() override {}
};

TEST_F(Uses, Tasks) {
  const Questions questions;
  questions.write_set();
  const eval::Tasks tasks({questions.folder / "animals"}, questions.folder / "tokenizer.json", {.generate = true});
  for (const std::string family : {"lm", "moe"}) {
    train(family, {"data.source=random", "model.vocab=19"});
    const auto asked = [&](const LoadedModel& loaded, const std::string& kept) {
      eval::TaskObserver quiet;
      std::filesystem::create_directories(folder_ / (family + kept));
      const auto record = eval::evaluate_task(dynamic_cast<const models::LanguageModel&>(*loaded.model), tasks,
                                              tasks.sets().front(), folder_ / (family + kept), quiet);
      EXPECT_TRUE(record);
      return record->metrics;
    };
    EXPECT_EQ(asked(load(testing::protected_device()), "there"), asked(load(at::kCPU), "here")) << family;
    EXPECT_EQ(io::read_file(folder_ / (family + "there") / "animals_rc.jsonl"),
              io::read_file(folder_ / (family + "here") / "animals_rc.jsonl"));
  }
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

TEST_F(Uses, UpcyclingOfImages) {
  train("vit", {"model.residual=pre"});
  const auto upcycled = [&](const LoadedModel& source) { return upcycle(source, "siamese"); };
  const auto from_there = load(testing::protected_device()), from_here = load(at::kCPU);
  const auto there = upcycled(from_there), here = upcycled(from_here);
  EXPECT_EQ(there.model->parameters().options().device(), testing::protected_device());
  const auto& expected = here.model->parameters().list();
  ASSERT_EQ(there.model->parameters().list().size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    testing::expect_same_bits(there.model->parameters().list()[i].value.cpu(), expected[i].value, expected[i].name);
  }
  const auto& vit = dynamic_cast<const models::VisionTransformer&>(*there.model);
  const auto& before = dynamic_cast<const models::VisionTransformer&>(*from_there.model);
  const c10::NoGradGuard no_grad;
  const at::Tensor images = testing::randn({2, 3, 16, 16}, 3, at::kFloat).to(testing::protected_device());
  testing::expect_relative(vit.logits(vit.features(images)).cpu(), before.logits(before.features(images)).cpu(), 1e-4,
                           "logits");
}

}  // namespace
}  // namespace siamese::train
