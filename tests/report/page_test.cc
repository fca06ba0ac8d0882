// The page: escaping, that it asks the network for nothing, and that its data holds what the folders held.
#include "siamese/report/page.h"

#include <algorithm>
#include <filesystem>
#include <string>

#include "tests/report/fake_runs.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "siamese/io/atomic_file.h"
#include "siamese/report/assets.h"
#include "siamese/report/report.h"
#include "siamese/runs/eval_record.h"

namespace siamese::report {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class PageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("siamese_page_test_" + std::to_string(::getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string page(const fs::path& folder) { return io::read_file(write_report(folder)); }

  fs::path root_;
};

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

json data_of(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"report-data\">";
  const size_t from = page.find(open) + open.size();
  return json::parse(page.substr(from, page.find("</script>", from) - from));
}

TEST(PageText, EscapesHtml) { EXPECT_EQ(escape_html("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;"); }

TEST(PageText, EscapesJsonForScript) {
  EXPECT_EQ(escape_json_for_script("\"</script><!-- \xE2\x80\xA8\xE2\x80\xA9 \xE2\x80\xA6\""),
            "\"\\u003c/script>\\u003c!-- \\u2028\\u2029 \xE2\x80\xA6\"");
}

TEST(PageText, AssetsAreEmbeddedWhole) {
  EXPECT_NE(style_text().find("prefers-color-scheme: dark"), std::string_view::npos);
  EXPECT_NE(script_text().find("build();"), std::string_view::npos);
  EXPECT_EQ(script_text().find("</script"), std::string_view::npos);
  EXPECT_EQ(style_text().find("</style"), std::string_view::npos);
}

TEST_F(PageTest, AsksTheNetworkForNothing) {
  write_fake_run(root_ / "run", {});
  const std::string text = page(root_ / "run");
  EXPECT_EQ(count(text, "https://"), 0u);
  EXPECT_EQ(count(text, "http://"), count(text, "http://www.w3.org/2000/svg"));
  EXPECT_EQ(count(text, "url("), count(text, "url(#"));
  EXPECT_EQ(count(text, "@import"), 0u);
  EXPECT_EQ(count(text, " src="), 0u);
  EXPECT_EQ(count(text, "default-src 'none'"), 1u);
}

TEST_F(PageTest, HostileTextStaysText) {
  const std::string hostile = "</script><script>alert(1)</script> \xE2\x80\xA8 \xFF <b>";
  write_fake_run(root_ / "run", {.message = "x"});
  json object{
      {"schema", 1}, {"status", "finished"}, {"scheme", "</script><img>"}, {"step", 1}, {"message", "\xE2\x80\xA8"}};
  write_text(root_ / "run" / "run.json", object.dump());
  write_text(root_ / "run" / "config.yaml", "note: \"" + hostile + "\"\n");
  const std::string text = page(root_ / "run");
  EXPECT_EQ(count(text, "</script>"), 2u);  // the data and the program, nothing else
  EXPECT_EQ(count(text, "<img"), 0u);
  EXPECT_EQ(count(text, "\xE2\x80\xA8"), 0u);
  const json run = data_of(text)["runs"][0];
  EXPECT_EQ(run["scheme"], "</script><img>");
  EXPECT_EQ(run["message"], "\xE2\x80\xA8");
}

TEST_F(PageTest, SweepData) {
  FakeRun lost{.variant = "post", .seed = 2, .last_step = 80, .status = "diverged", .message = "loss not finite"};
  FakeRun unevaluated{.variant = "siamese", .seed = 1, .blocks = 48, .streams = {"X", "Y"}, .eval_every = 0};
  FakeRun waiting{.variant = "siamese", .seed = 2, .last_step = 0};
  write_fake_sweep(root_ / "sweep", "demo", {FakeRun{.variant = "post"}, lost, unevaluated, waiting});
  const json data = data_of(page(root_ / "sweep"));
  EXPECT_EQ(data["name"], "demo");
  EXPECT_EQ(data["grid"]["first"].size(), 200u);
  ASSERT_EQ(data["groups"].size(), 2u);
  EXPECT_EQ(data["groups"][0]["diverged"], 1);
  EXPECT_EQ(data["groups"][0]["val_loss"]["count"], 1);
  EXPECT_TRUE(data["groups"][1]["val_loss"]["mean"].is_null());
  const json& run = data["runs"][1];
  EXPECT_EQ(run["state"], "diverged");
  EXPECT_EQ(run["loss"]["mean"].size(), 80u);
  EXPECT_TRUE(run["loss"]["mean"][79].is_null());  // the step whose loss was not finite
  EXPECT_FALSE(run["loss"].contains("low"));       // step by step: the value is its own extreme
  EXPECT_EQ(data["runs"][2]["depth"]["sites"].size(), 96u);
  EXPECT_EQ(data["runs"][2]["depth"]["streams"], json({"X", "Y"}));
  EXPECT_TRUE(data["runs"][2]["depth"]["rows"][0]["after"][1][1].is_null());
  EXPECT_EQ(data["runs"][3]["state"], "not started");
  EXPECT_TRUE(data["runs"][3]["depth"].is_null());
  ASSERT_EQ(data["differences"].size(), 2u);
  EXPECT_EQ(data["differences"][0]["key"], "model.blocks");
  EXPECT_EQ(data["differences"][1]["key"], "train.seed");
}

TEST_F(PageTest, LongRunsAreBoundedAndKeepTheirSpikes) {
  write_fake_run(root_ / "run", {.steps = 20000, .last_step = 20000, .sites_every = 0, .spike_at = 12345});
  const std::string text = page(root_ / "run");
  EXPECT_LT(text.size(), 400u << 10);
  const json loss = data_of(text)["runs"][0]["loss"];
  EXPECT_LE(loss["mean"].size(), 1100u);
  double highest = 0;
  for (const json& value : loss["high"]) highest = std::max(highest, value.get<double>());
  EXPECT_EQ(highest, 40);
}

TEST_F(PageTest, HeldOutSetsAndTasks) {
  write_fake_run(root_ / "run", {});
  runs::EvalRecord record;
  record.step = 200;
  record.loss = 1.5;
  record.targets = 10;
  record.sets = {{.name = "web", .loss = 1.25, .perplexity = 3.5, .bits_per_byte = 0.75, .targets = 5},
                 {.name = "books", .loss = 2, .perplexity = 7.5, .bits_per_byte = runs::kNone, .targets = 5}};
  record.tasks = {
      {.name = "piqa", .primary = "len_norm", .documents = 9, .left_out = 0, .metrics = {{"len_norm", 0.5}}}};
  write_text(root_ / "run" / "eval.jsonl", runs::to_line(record) + "\n");
  const json row = data_of(page(root_ / "run"))["runs"][0]["evals"][0];
  EXPECT_EQ(row["sets"], json({{"web", 1.25, 3.5, 0.75}, {"books", 2.0, 7.5, nullptr}}));
  EXPECT_EQ(row["tasks"], json::array({{"piqa", "len_norm", 0.5, 9}}));
}

TEST_F(PageTest, ARunThatHasOnlyItsConfigStillHasAPage) {
  write_text(root_ / "config.yaml", "model:\n  width: 64\n");
  const json data = data_of(page(root_));
  EXPECT_EQ(data["runs"][0]["state"], "not started");
  EXPECT_EQ(data["runs"][0]["config"], "model:\n  width: 64\n");
  EXPECT_TRUE(data["grid"]["first"].empty());
}

}  // namespace
}  // namespace siamese::report
