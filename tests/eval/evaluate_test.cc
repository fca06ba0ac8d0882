// The lines of eval.jsonl of models that see images, field by field (docs/run-directory.md).
#include "siamese/eval/evaluate.h"

#include <set>

#include "tests/eval/small_images.h"
#include <nlohmann/json.hpp>

#include "siamese/eval/inputs.h"

namespace siamese::eval {
namespace evaluate_test {

using nlohmann::json;

data::DataConfig shapes() {
  data::DataConfig data;
  data.source = data::Source::shapes;
  return data;
}

std::set<std::string> keys(const json& object) {
  std::set<std::string> names;
  for (const auto& entry : object.items()) names.insert(entry.key());
  return names;
}

TEST(Evaluate, AClassifierReportsTopOneTopFiveAndConfusion) {
  const SmallVit vit(12);
  const RandomPictures pictures(vit.config, 0);
  const auto data = shapes();
  const Evaluation result = evaluate({*vit.owner, data, pictures, 5, 3, 42, nullptr}, {.held_out = 20});
  const Classification expected = classify(vit.get(), pictures, 20, 20);
  const json line = json::parse(to_json(result));
  EXPECT_EQ(keys(line), (std::set<std::string>{"schema", "kind", "checksum", "step", "loss", "baseline", "images",
                                               "classification"}));
  EXPECT_EQ(line["schema"], 2);
  EXPECT_EQ(line["step"], 42);
  EXPECT_EQ(line["images"], 20);
  EXPECT_NEAR(line["loss"].get<double>(), expected.loss, 1e-6);
  const json& classification = line["classification"];
  EXPECT_EQ(keys(classification), (std::set<std::string>{"top1", "top5", "classes", "confusion"}));
  EXPECT_EQ(classification["top1"], (json{{"correct", expected.top1}, {"count", 20}}));
  EXPECT_EQ(classification["top5"], (json{{"correct", expected.top5}, {"count", 20}}));
  EXPECT_EQ(classification["classes"].size(), 12U);
  EXPECT_EQ(classification["confusion"], json(expected.confusion));
  EXPECT_NE(result.measures_text().find("top-1 "), std::string::npos) << result.measures_text();
  EXPECT_EQ(result.measures_text().find("perplexity"), std::string::npos) << result.measures_text();
}

TEST(Evaluate, AMatrixOfTooManyClassesIsLeftOut) {
  const SmallVit vit(kMostConfused + 1);
  const data::DataConfig data{.source = data::Source::random};
  const RandomPictures pictures(vit.config, 0);
  const auto result = evaluate({*vit.owner, data, pictures, 2, 2, 0, nullptr}, {.held_out = 2});
  EXPECT_EQ(keys(json::parse(to_json(result))["classification"]), (std::set<std::string>{"top1", "top5"}));
}

TEST(Evaluate, ADiffusionModelReportsItsTermsAndSamples) {
  const SmallDit dit(12);
  const SmallVit judge(12);
  const RandomPictures pictures(dit.config, 0);
  const auto data = shapes();
  EvalConfig config{.held_out = 8};
  json line = json::parse(to_json(evaluate({*dit.owner, data, pictures, 4, 3, 7, nullptr}, config)));
  EXPECT_EQ(keys(line),
            (std::set<std::string>{"schema", "kind", "checksum", "step", "loss", "baseline", "images", "diffusion"}));
  EXPECT_EQ(line["images"], 8);
  EXPECT_EQ(keys(line["diffusion"]), (std::set<std::string>{"mse", "vlb"}));
  EXPECT_NEAR(line["loss"].get<double>(),
              line["diffusion"]["mse"].get<double>() + line["diffusion"]["vlb"].get<double>(), 1e-5);

  config.samples = 10;
  config.sampler = SamplerKind::ddpm;
  config.sampler_steps = 3;
  config.guidance = 1.5;
  config.averaged = true;  // of the caller's doing; said here
  Evaluation result = evaluate({*dit.owner, data, pictures, 4, 3, 7, nullptr}, config);
  line = json::parse(to_json(result));
  EXPECT_EQ(line["averaged"], true);
  EXPECT_EQ(line["samples"], (json{{"count", 10}, {"sampler", "ddpm"}, {"steps", 3}, {"guidance", 1.5}}));
  testing::expect_same_bits(result.samples->images,
                            draw_samples(dit.get(), all_classes(12), 10, 3, config.sampler_options()), "samples");
  result.samples->grid = "samples/step7.png";
  EXPECT_EQ(json::parse(to_json(result))["samples"]["grid"], "samples/step7.png");

  config.classifier = "runs/judge";
  result = evaluate({*dit.owner, data, pictures, 4, 3, 7, &judge.get()}, config);
  line = json::parse(to_json(result))["samples"];
  EXPECT_EQ(keys(line), (std::set<std::string>{"count", "sampler", "steps", "guidance", "classifier",
                                               "feature_distance", "class_agreement"}));
  EXPECT_EQ(line["classifier"], "runs/judge");
  const auto quality = judge_samples(judge.get(), result.samples->images, all_classes(12), pictures, 3, 8);
  EXPECT_EQ(line["feature_distance"].get<double>(), quality.feature_distance);
  EXPECT_EQ(line["class_agreement"].get<double>(), quality.class_agreement);
}

// Pixels end at -1 and 1, latents do not.
TEST(Evaluate, OnlyPixelsAreClipped) {
  const SmallDit dit(12);
  const RandomPictures pictures(dit.config, 0);
  EvalConfig config{.held_out = 2, .samples = 4};
  config.sampler_steps = 3;
  const auto largest = [&](data::Source source) {
    const data::DataConfig data{.source = source};
    return testing::largest(evaluate({*dit.owner, data, pictures, 2, 2, 0, nullptr}, config).samples->images);
  };
  EXPECT_LE(largest(data::Source::shapes), 1);
  EXPECT_GT(largest(data::Source::latents), 1);
}

// Which samples are asked depends on eval.held_out alone: not on how a run cuts its steps, nor on how files begin.
TEST(Evaluate, HeldOutSamplesAreSpreadOverTheSet) {
  const SmallDit dit(12);
  const RandomPictures pictures(dit.config, 9);
  const auto data = shapes();
  const EvalConfig config{.held_out = 4};
  const Evaluation result = evaluate({*dit.owner, data, pictures, 4, 3, 7, nullptr}, config);
  const c10::NoGradGuard no_grad;
  double sum = 0;
  for (uint64_t i = 0; i < 4; ++i) {
    models::Inputs inputs = to_inputs(pictures.batch(std::vector<uint64_t>{0, 2, 4, 6}[i], 1));  // floor(i 9 / 4)
    inputs.first_position = i;  // timestep and noise are those of the i-th question
    sum += dit.owner->losses(inputs, {}).loss.item<double>();
  }
  EXPECT_EQ(result.held_out.targets, 4);
  EXPECT_NEAR(result.held_out.loss, sum / 4, 1e-5 * sum);
  const Evaluation other = evaluate({*dit.owner, data, pictures, 64, 4, 7, nullptr}, config);
  EXPECT_NEAR(other.held_out.loss, result.held_out.loss, 1e-5 * sum);
  EXPECT_EQ(other.held_out.targets, 4);
  EXPECT_EQ(other.baseline, result.baseline);
  EXPECT_NE(other.loss_text().find(" over 4 images (baseline "), std::string::npos) << other.loss_text();
  // The old key asks the first of them, as it always did.
  const Evaluation first = evaluate({*dit.owner, data, pictures, 2, 2, 7, nullptr}, {.batches = 2});
  EXPECT_NEAR(first.held_out.loss, held_out_loss(*dit.owner, pictures, 4, 4).loss, 1e-5 * sum);
}

// Over all held-out images alike, also when the last pass is smaller.
TEST(HeldOut, TermsAreMeansOverImages) {
  const SmallDit dit;
  const RandomPictures pictures(dit.config, 7);
  const HeldOut result = held_out_loss(*dit.owner, pictures, 3, 100);
  EXPECT_EQ(result.targets, 7);
  ASSERT_EQ(result.terms.size(), 2U);
  double sums[] = {0, 0};
  const c10::NoGradGuard no_grad;
  for (uint64_t i = 0; i < 7; ++i) {
    const models::Losses losses = dit.owner->losses(to_inputs(pictures.batch(i, 1)), {});
    for (size_t term = 0; term < 2; ++term) sums[term] += losses.extra[term].second.item<double>();
  }
  EXPECT_EQ(result.terms[0].first, "mse");
  EXPECT_EQ(result.terms[1].first, "vlb");
  EXPECT_NEAR(result.terms[0].second, sums[0] / 7, 1e-5);
  EXPECT_NEAR(result.terms[1].second, sums[1] / 7, 1e-5 * (1 + sums[1]));
  EXPECT_NEAR(result.loss, (sums[0] + sums[1]) / 7, 1e-5 * (1 + sums[1]));
}

// Of text there are none: a router's terms are about a batch, not about a target.
TEST(HeldOut, MixturesOfExpertsReportTheLossAlone) {
  const auto config = models::small_family(models::Family::moe, "siamese");
  const auto model = models::make_small(config);
  const auto source = data::open_batches({.source = data::Source::random}, data::Split::test,
                                         {.context = config.context, .vocab = config.vocab}, 0);
  const HeldOut result = held_out_loss(*model, *source, 2, 3);
  EXPECT_TRUE(result.terms.empty());
  const c10::NoGradGuard no_grad;
  double sum = 0;
  for (uint64_t i = 0; i < 3; ++i) sum += model->losses(to_inputs(source->batch(i, 1)), {}).loss.item<double>();
  EXPECT_NEAR(result.loss, sum / static_cast<double>(3 * config.context), 1e-5);
}

}  // namespace evaluate_test
}  // namespace siamese::eval
