#include "siamese/train/classifier.h"

#include "tests/train/tiny_run.h"

#include "siamese/base/check.h"
#include "siamese/train/trainer.h"

namespace siamese::train {
namespace classifier_test {

// What a dit run with this classifier says.
std::string refusal(const RunConfig& config) {
  try {
    const Classifier classifier(config);
  } catch (const DataError& error) {
    return error.what();
  }
  return "accepted";
}

std::filesystem::path short_run(const TemporaryFolder& folder, const std::string& name, const RunConfig& config) {
  start_run(config, folder / name, false, "", {});
  return folder / name;
}

TEST(Classifier, JudgesWhatARunDraws) {
  const TemporaryFolder folder("classifier");
  const auto judge = short_run(folder, "vit", tiny_family("vit", {"train.steps=1"}));
  const RunConfig config = tiny_family("dit", {"eval.classifier=" + judge.string(), "eval.samples=8"});
  ASSERT_NE(Classifier(config).model(), nullptr);
  EXPECT_EQ(Classifier(tiny_family("dit")).model(), nullptr);
  RunConfig vit = tiny_family("vit");
  vit.eval.classifier = judge.string();
  EXPECT_EQ(Classifier(vit).model(), nullptr);
  const Trainer trainer(config);
  const auto evaluation = trainer.evaluate();
  ASSERT_TRUE(evaluation.samples && evaluation.samples->quality);
  EXPECT_GT(evaluation.samples->quality->feature_distance, 0);
}

TEST(Classifier, RefusalsSayWhatWasExpected) {
  const TemporaryFolder folder("classifier_bad");
  const std::string judge = short_run(folder, "vit", tiny_family("vit", {"train.steps=1"})).string();
  const std::string painter = short_run(folder, "dit", tiny_family("dit", {"train.steps=1"})).string();
  const auto with = [](const std::string& path, const std::vector<std::string>& overrides = {}) {
    auto all = overrides;
    all.push_back("eval.classifier=" + path);
    return refusal(tiny_family("dit", all));
  };
  EXPECT_EQ(with(judge), "accepted");
  EXPECT_EQ(with(painter), "eval.classifier: " + painter + ": expected a model of family vit, got dit");
  const std::string usual = "16 x 16 images of 3 channels, 12 classes, data.normalize symmetric";
  EXPECT_EQ(with(judge, {"model.image=32"}),
            "eval.classifier: " + judge +
                ": expected a classifier of 32 x 32 images of 3 channels, 12 classes, data.normalize symmetric, got " +
                usual);
  EXPECT_NE(with(judge, {"model.classes=13"}).find("13 classes"), std::string::npos);
  const auto other = short_run(folder, "other", tiny_family("vit", {"train.steps=1", "data.normalize=imagenet"}));
  EXPECT_NE(with(other.string()).find("12 classes, data.normalize imagenet"), std::string::npos);
  const std::string missing = with((folder / "nowhere").string());
  EXPECT_TRUE(missing.starts_with("eval.classifier: ")) << missing;
  EXPECT_NE(missing.find("nowhere"), std::string::npos) << missing;
}

// Before anything is trained or a folder made.
TEST(Classifier, IsRefusedBeforeTheRunBegins) {
  const TemporaryFolder folder("classifier_early");
  const RunConfig config = tiny_family("dit", {"eval.classifier=" + (folder / "nowhere").string()});
  EXPECT_THROW(start_run(config, folder / "run", false, "", {}), DataError);
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

}  // namespace classifier_test
}  // namespace siamese::train
