// What moe, vit and dit runs write beside the loss: read, averaged, told apart, and put into the page.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/report/fake_runs.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "siamese/report/aggregate.h"
#include "siamese/report/csv.h"
#include "siamese/report/eval_reader.h"
#include "siamese/report/measures.h"
#include "siamese/report/page_data.h"
#include "siamese/report/reader.h"
#include "siamese/report/report.h"
#include "siamese/report/snapshots.h"
#include "siamese/report/step_reader.h"
#include "siamese/report/summary.h"

namespace siamese::report {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class FamiliesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("siamese_families_test_" + std::to_string(::getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  // A run whose eval.jsonl is this one line.
  RunRecord run_with_eval(const json& line) {
    fs::create_directories(root_ / "one");
    write_text(root_ / "one" / "eval.jsonl", line.dump() + "\n");
    return read_run(root_ / "one");
  }

  json data_of(const fs::path& folder) {
    const Collection collection = read_collection(folder);
    return json::parse(page_data(collection, group_results(collection.runs)));
  }

  fs::path root_;
};

TEST_F(FamiliesTest, ReadsAClassifier) {
  write_fake_run(root_ / "run", {.seed = 12, .family = "vit"});
  const RunRecord run = read_run(root_ / "run");
  EXPECT_EQ(run.family, "vit");
  EXPECT_EQ(run.median_samples_per_s(), 1200);
  ASSERT_EQ(run.evals.size(), 4u);
  EXPECT_EQ(run.evals[0].measures, (Measures{{"top1", 412.0 / 512}, {"top5", 500.0 / 512}}));
  EXPECT_FALSE(run.evals[2].confusion);  // only the newest is kept
  ASSERT_TRUE(run.evals[3].confusion);
  EXPECT_EQ(run.evals[3].confusion->classes, (std::vector<std::string>{"circle", "square"}));
  EXPECT_EQ(run.evals[3].confusion->counts, (std::vector<std::vector<int64_t>>{{200, 56}, {200, 256}}));
  EXPECT_EQ(run.final_measures().at("top1"), 412.0 / 512);
  EXPECT_TRUE(run.notes.empty());
}

TEST_F(FamiliesTest, ReadsADiffusionModel) {
  write_fake_run(root_ / "run", {.seed = 2, .family = "dit"});
  const RunRecord run = read_run(root_ / "run");
  EXPECT_EQ(run.metrics.mse.back(), 0.2);
  EXPECT_EQ(run.metrics.vlb.front(), 0.0001);
  EXPECT_EQ(run.final_measures(),
            (Measures{{"mse", 0.25}, {"vlb", 0.03125}, {"feature_distance", 12}, {"class_agreement", 0.5}}));
  ASSERT_TRUE(run.evals[3].samples);
  EXPECT_EQ(run.evals[3].samples->count, 64);
  EXPECT_EQ(run.evals[3].samples->sampler, "ddim");
  EXPECT_EQ(run.evals[3].samples->steps, 50);
  EXPECT_EQ(run.evals[3].samples->guidance, 1.5);
  EXPECT_EQ(run.evals[3].samples->classifier, "runs/judge");
  EXPECT_EQ(run.evals[3].samples->grid, "samples/step200.png");
}

TEST_F(FamiliesTest, ReadsAMixtureOfExperts) {
  write_fake_run(root_ / "run", {.seed = 4, .family = "moe"});
  const RunRecord run = read_run(root_ / "run");
  EXPECT_EQ(run.metrics.balance_loss.size(), 200u);
  EXPECT_EQ(run.metrics.router_z_loss[7], 3);
  EXPECT_EQ(run.final_measures(), (Measures{{"expert_max_load", 5}}));
  ASSERT_EQ(run.snapshots.size(), 5u);
  ASSERT_EQ(run.snapshots[4].experts.size(), 2u);
  EXPECT_EQ(run.snapshots[4].experts[1].block, 3);
  EXPECT_EQ(run.snapshots[4].experts[0].load, (std::vector<double>{0.25, 0.75}));
}

TEST_F(FamiliesTest, ARunWithoutAFamilyIsALanguageModel) {
  write_text(root_ / "config.yaml", "model:\n  width: 64\n");
  EXPECT_EQ(read_run(root_).family, "lm");
  EXPECT_TRUE(read_run(root_).final_measures().empty());
}

TEST_F(FamiliesTest, EachMeasureIsThatOfTheLastEvaluationThatHasIt) {
  fs::create_directories(root_ / "run");
  std::ofstream(root_ / "run" / "eval.jsonl")
      << json{{"step", 1}, {"diffusion", {{"mse", 0.5}}}, {"samples", {{"feature_distance", 7}}}}.dump() << "\n"
      << json{{"step", 2}, {"diffusion", {{"mse", 0.4}}}}.dump() << "\n";
  EXPECT_EQ(read_run(root_ / "run").final_measures(), (Measures{{"mse", 0.4}, {"feature_distance", 7}}));
}

TEST_F(FamiliesTest, NamelessClassesAreNumbered) {
  json classification{{"confusion", {{1, 0}, {0, 1}}}};
  const std::vector<std::string> numbered{"0", "1"};
  EXPECT_EQ(run_with_eval({{"step", 1}, {"classification", classification}}).evals[0].confusion->classes, numbered);
  classification["classes"] = {"only one"};
  EXPECT_EQ(run_with_eval({{"step", 1}, {"classification", classification}}).evals[0].confusion->classes, numbered);
}

TEST_F(FamiliesTest, AMatrixThatIsNoneIsANote) {
  const std::vector<std::pair<json, std::string>> bad{{json{{1, 2}, {3}}, "expected 2 rows of 2 counts each"},
                                                      {json{{1, 2, 3}, {3, 4, 5}}, "expected 2 rows of 2 counts each"},
                                                      {json{{1, -2}, {3, 4}}, "expected counts"},
                                                      {json{{1, 0.5}, {3, 4}}, "expected counts"},
                                                      {json{{1, "2"}, {3, 4}}, "expected counts"},
                                                      {json{7, 8}, "expected 2 rows of 2 counts each"},
                                                      {json(201, json(201, 0)), "at most 200 classes, got 201"}};
  for (const auto& [matrix, words] : bad) {
    const RunRecord run = run_with_eval({{"step", 9}, {"classification", {{"confusion", matrix}}}});
    EXPECT_FALSE(run.evals[0].confusion) << words;
    ASSERT_EQ(run.notes.size(), 1u) << words;
    EXPECT_NE(run.notes[0].find("eval.jsonl: line 1: classification: confusion"), std::string::npos) << run.notes[0];
    EXPECT_NE(run.notes[0].find(words), std::string::npos) << run.notes[0];
  }
  const RunRecord large = run_with_eval({{"step", 9}, {"classification", {{"confusion", json(200, json(200, 1))}}}});
  EXPECT_TRUE(large.notes.empty());
  EXPECT_TRUE(large.evals[0].confusion);
}

TEST_F(FamiliesTest, PromptsAndWhatWasMadeOfThem) {
  fs::create_directories(root_ / "one");
  const json made = {{{"prompt", "Once"}, {"text", " upon </script>"}}};
  const json first = {{"step", 1}, {"loss", 2.0}, {"prompts", made}}, last = {{"step", 2}, {"loss", 1.0}};
  write_text(root_ / "one" / "eval.jsonl", first.dump() + "\n" + last.dump() + "\n");
  const RunRecord run = read_run(root_ / "one");
  ASSERT_EQ(run.evals.size(), 2u);
  ASSERT_EQ(run.evals[0].prompts.size(), 1u);
  EXPECT_EQ(run.evals[0].prompts[0].text, " upon </script>");
  EXPECT_TRUE(run.evals[1].prompts.empty());
  // Too many, and too much.
  const RunRecord many = run_with_eval({{"step", 1}, {"prompts", json(kPromptLimit + 1, made[0])}});
  EXPECT_EQ(many.evals[0].prompts.size(), kPromptLimit);
  ASSERT_EQ(many.notes.size(), 1u);
  EXPECT_NE(many.notes[0].find("prompts: expected at most 32, got 33"), std::string::npos) << many.notes[0];
  const json large = {{{"prompt", "a"}, {"text", std::string(kPromptBytes, 'x')}}};
  EXPECT_TRUE(run_with_eval({{"step", 1}, {"prompts", large}}).evals[0].prompts.empty());
}

TEST_F(FamiliesTest, ForeignAnswersAreNoMeasure) {
  const auto top1 = [&](const json& answers) {
    return run_with_eval({{"step", 1}, {"classification", {{"top1", answers}}}}).evals[0].measures.contains("top1");
  };
  EXPECT_TRUE(top1({{"correct", 0}, {"count", 5}}));
  EXPECT_FALSE(top1({{"correct", 0}, {"count", 0}}));
  EXPECT_FALSE(top1({{"correct", 6}, {"count", 5}}));
  EXPECT_FALSE(top1({{"correct", -1}, {"count", 5}}));
  EXPECT_FALSE(top1({{"count", 5}}));
  EXPECT_FALSE(top1(0.8));
}

TEST_F(FamiliesTest, TooManyExpertsAreANote) {
  fs::create_directories(root_ / "run");
  json line{{"step", 1}, {"experts", json::array({{{"block", 0}, {"load", json(kExpertLimit + 1, 0.5)}}})}};
  write_text(root_ / "run" / "metrics.jsonl", line.dump() + "\n");
  const RunRecord run = read_run(root_ / "run");
  ASSERT_EQ(run.notes.size(), 1u);
  EXPECT_NE(run.notes[0].find("metrics.jsonl: experts"), std::string::npos) << run.notes[0];
  EXPECT_TRUE(run.snapshots[0].experts.empty());
}

RunRecord measured_run(const std::string& family, const std::string& variant, int64_t seed, const Measures& measures) {
  RunRecord run;
  run.family = family;
  run.variant = variant;
  run.lr = 0.002;
  run.seed = seed;
  run.state = RunState::finished;
  run.progress = 1;  // judged, and not stuck
  EvalRow row;
  row.step = 100;
  row.loss = 0.5;
  row.measures = measures;
  run.evals = {row};
  run.metrics.step = {1};
  run.metrics.loss = {4};
  run.metrics.tokens_per_s = {1000};
  run.metrics.samples_per_s = {300};
  return run;
}

TEST(FamilyGroups, MeasuresAreAveragedOverSeeds) {
  std::vector<RunRecord> runs{measured_run("vit", "pre", 1, {{"top1", 0.8}, {"top5", 0.9}}),
                              measured_run("vit", "pre", 2, {{"top1", 0.6}}),
                              measured_run("vit", "pre", 3, {{"top1", 0.1}})};
  runs[2].state = RunState::diverged;
  const ResultGroup group = group_results(runs)[0];
  EXPECT_EQ(group.measures.at("top1").count, 2u);
  EXPECT_DOUBLE_EQ(group.measures.at("top1").mean, 0.7);
  EXPECT_NEAR(group.measures.at("top1").spread, 0.1 * std::sqrt(2.0), 1e-12);
  EXPECT_EQ(group.measures.at("top5").count, 1u);
  EXPECT_EQ(group.measures.count("mse"), 0u);
  EXPECT_EQ(group.samples_per_s, 300);
}

TEST(FamilyGroups, StandApartInOrderOfFirstAppearance) {
  const std::vector<RunRecord> runs{measured_run("vit", "pre", 1, {}), measured_run("lm", "pre", 1, {}),
                                    measured_run("vit", "siamese", 1, {}), measured_run("lm", "pre", 2, {})};
  const auto families = split_by_family(group_results(runs));
  ASSERT_EQ(families.size(), 2u);
  ASSERT_EQ(families[0].size(), 2u);
  EXPECT_EQ(families[0][0].family, "vit");
  EXPECT_EQ(families[0][1].variant, "siamese");
  ASSERT_EQ(families[1].size(), 1u);  // the same name in another family is another result
  EXPECT_EQ(families[1][0].runs, (std::vector<size_t>{1, 3}));
}

TEST(FamilySummary, ATaskHasAColumn) {
  const Measures first{{"piqa/rc_0shot len_norm", 0.75}, {"stories bpb", 0.61234}};
  const std::vector<RunRecord> runs{measured_run("lm", "pre", 1, first), measured_run("lm", "post", 1, {})};
  const std::string table = summary_markdown(group_results(runs));
  EXPECT_NE(table.find("| accuracy | piqa/rc_0shot len_norm | stories bpb | runs |"), std::string::npos) << table;
  EXPECT_NE(table.find("|                 75.0 % |      0.6123 |    1 |"), std::string::npos) << table;
  EXPECT_NE(table.find("|                      - |           - |    1 |"), std::string::npos) << table;
  const std::string csv = results_csv(group_results(runs));
  EXPECT_NE(csv.find(",stories bpb,stories bpb_sd,"), std::string::npos) << csv;
  EXPECT_FALSE(is_measure("beauty"));
  EXPECT_FALSE(is_measure("a beauty"));
  EXPECT_TRUE(is_measure("stories bpb_v1"));
}

TEST(FamilySummary, BitsPerByteAndEachHeldOutSetHaveAColumn) {
  const Measures first{{"bits_per_byte", 2.25}, {"web loss", 1.5}, {"books loss", 1.23456}, {"a bpb", 1}};
  const std::vector<RunRecord> runs{measured_run("lm", "pre", 1, first)};
  const std::string table = summary_markdown(group_results(runs));
  EXPECT_NE(table.find("| accuracy | bits per byte | books loss | web loss |  a bpb | runs |"), std::string::npos)
      << table;
  EXPECT_NE(table.find("|        2.2500 |     1.2346 |   1.5000 | 1.0000 |    1 |"), std::string::npos) << table;
  const std::string csv = results_csv(group_results(runs));
  EXPECT_NE(csv.find(",bits_per_byte,bits_per_byte_sd,"), std::string::npos) << csv;
  EXPECT_NE(csv.find(",books loss,books loss_sd,web loss,web loss_sd,"), std::string::npos) << csv;
  EXPECT_TRUE(is_measure("bits_per_byte") && is_measure("web loss"));
  EXPECT_FALSE(is_measure("loss") || is_measure(" loss"));
}

TEST(FamilySummary, OneTableForEachFamily) {
  const std::vector<RunRecord> runs{
      measured_run("vit", "pre", 1, {{"top1", 0.8}, {"top5", 0.975}}),
      measured_run("vit", "pre", 2, {{"top1", 0.6}, {"top5", 0.975}}),
      measured_run("dit", "pre", 1, {{"feature_distance", 12.345}, {"class_agreement", 0.83}}),
      measured_run("dit", "post", 1, {}), measured_run("lm", "pre", 1, {})};
  EXPECT_EQ(
      summary_markdown(group_results(runs)),
      "### vit\n"
      "\n"
      "| variant |    lr |         val loss |          top-1 |         top-5 | runs | diverged | stuck | images/s |\n"
      "|---------|------:|-----------------:|---------------:|--------------:|-----:|---------:|------:|---------:|\n"
      "| pre     | 0.002 | 0.5000 +- 0.0000 | 70.0 +- 14.1 % | 97.5 +- 0.0 % |    2 |        0 |     0 |      300 |\n"
      "\n"
      "### dit\n"
      "\n"
      "| variant |    lr | val loss | feature distance | class agreement | runs | diverged | stuck | images/s |\n"
      "|---------|------:|---------:|-----------------:|----------------:|-----:|---------:|------:|---------:|\n"
      "| pre     | 0.002 |   0.5000 |            12.35 |          83.0 % |    1 |        0 |     0 |      300 |\n"
      "| post    | 0.002 |   0.5000 |                - |               - |    1 |        0 |     0 |      300 |\n"
      "\n"
      "### lm\n"
      "\n"
      "| variant |    lr | val loss | accuracy | runs | diverged | stuck | tokens/s |\n"
      "|---------|------:|---------:|---------:|-----:|---------:|------:|---------:|\n"
      "| pre     | 0.002 |   0.5000 |        - |    1 |        0 |     0 |     1000 |\n");
}

TEST(FamilySummary, OneFamilyHasNoHeading) {
  const std::string table =
      summary_markdown(group_results({measured_run("moe", "pre", 1, {{"expert_max_load", 1.3}})}));
  EXPECT_EQ(table,
            "| variant |    lr | val loss | max load | runs | diverged | stuck | tokens/s |\n"
            "|---------|------:|---------:|---------:|-----:|---------:|------:|---------:|\n"
            "| pre     | 0.002 |   0.5000 |     1.30 |    1 |        0 |     0 |     1000 |\n");
}

TEST_F(FamiliesTest, PageData) {
  write_fake_sweep(root_ / "sweep", "mixed",
                   {FakeRun{.variant = "v", .seed = 1, .family = "vit"}, FakeRun{.variant = "d", .family = "dit"},
                    FakeRun{.variant = "m", .family = "moe"}, FakeRun{.variant = "l"},
                    FakeRun{.variant = "d", .seed = 2, .last_step = 0, .family = "dit"},
                    FakeRun{.variant = "unseen", .last_step = 0}});
  const json data = data_of(root_ / "sweep");
  const json &vit = data["runs"][0], &dit = data["runs"][1], &moe = data["runs"][2], &lm = data["runs"][3];
  EXPECT_EQ(vit["family"], "vit");
  EXPECT_EQ(vit["speed"]["mean"][3], 100);  // images/s
  EXPECT_EQ(vit["samples_per_s"], 100);
  EXPECT_DOUBLE_EQ(vit["evals"][3]["top1"], 0.7832031);
  EXPECT_EQ(vit["confusion"]["step"], 200);
  EXPECT_EQ(vit["confusion"]["classes"], json({"circle", "square"}));
  EXPECT_EQ(vit["confusion"]["counts"], json({{200, 56}, {200, 256}}));
  EXPECT_FALSE(vit.contains("mse"));
  EXPECT_EQ(dit["mse"]["mean"][9], 0.01);
  EXPECT_EQ(dit["measures"]["feature_distance"], 11);
  EXPECT_EQ(dit["evals"][0]["samples"]["classifier"], "runs/judge");
  EXPECT_FALSE(dit["evals"][0]["samples"].contains("grid"));  // no file was read
  ASSERT_EQ(moe["experts"].size(), 5u);
  EXPECT_EQ(moe["experts"][4]["step"], 200);
  EXPECT_EQ(moe["experts"][4]["blocks"], json({0, 3}));
  EXPECT_EQ(moe["experts"][4]["loads"], json({{0.25, 0.75}, {0.5, 0.5}}));
  EXPECT_EQ(moe["expert_max_load"]["mean"][0], 2);
  EXPECT_EQ(lm["family"], "lm");
  EXPECT_TRUE(lm["experts"].is_null());
  EXPECT_TRUE(lm["confusion"].is_null());
  EXPECT_NEAR(lm["speed"]["mean"][3].get<double>(), 31000, 6000);
  EXPECT_EQ(data["runs"][4]["family"], "dit");          // not started: as its variant
  EXPECT_EQ(data["runs"][5]["family"], "not started");  // none like it, and the others differ
  EXPECT_EQ(data["groups"][0]["family"], "vit");
  EXPECT_DOUBLE_EQ(data["groups"][0]["measures"]["top1"]["mean"], 0.7832031);
}

TEST_F(FamiliesTest, ARunThatHasNotStartedIsLikeAllTheOthers) {
  write_fake_sweep(root_ / "sweep", "demo",
                   {FakeRun{.variant = "pre", .family = "vit"}, FakeRun{.variant = "post", .last_step = 0}});
  EXPECT_EQ(read_collection(root_ / "sweep").runs[1].family, "vit");
  fs::remove_all(root_ / "sweep");
  write_fake_sweep(root_ / "sweep", "demo", {FakeRun{.variant = "post", .last_step = 0}});
  EXPECT_EQ(read_collection(root_ / "sweep").runs[0].family, "lm");
}

TEST_F(FamiliesTest, HostileNamesStayText) {
  const std::string hostile = "</script><img src=x>";
  FakeRun run{.family = "vit"};
  write_fake_run(root_ / "run", run);
  write_text(root_ / "run" / "config.yaml", "model:\n  family: \"" + hostile + "\"\n");
  json line{{"step", 1}, {"samples", {{"classifier", hostile}, {"sampler", hostile}}}};
  line["classification"] = {{"classes", {hostile}}, {"confusion", json::array({json::array({1})})}};
  write_text(root_ / "run" / "eval.jsonl", line.dump() + "\n");
  const Collection collection = read_collection(root_ / "run");
  const std::string data = page_data(collection, group_results(collection.runs));
  EXPECT_EQ(data.find('<'), std::string::npos);
  EXPECT_EQ(json::parse(data)["runs"][0]["confusion"]["classes"][0], hostile);
  EXPECT_EQ(json::parse(data)["runs"][0]["family"], hostile);
}

}  // namespace
}  // namespace siamese::report
