// The page of an analysis: what it holds, side by side, and that no name of a run or stream leaves its place.
#include "siamese/report/analysis_page.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "siamese/base/check.h"
#include "siamese/io/atomic_file.h"
#include "siamese/report/analysis_charts.h"
#include "siamese/report/assets.h"

namespace siamese::report {
namespace {
namespace analysis_pages {

using nlohmann::json;

runs::AnalysisRecord analysis(const std::string& scheme, const std::vector<std::string>& streams) {
  runs::AnalysisRecord record{.run = "runs/" + scheme, .scheme = scheme, .family = "lm", .blocks = 1, .loss = 2};
  record.changed_loss = 2.5;
  for (int64_t i = 0; i < 3; ++i) {
    runs::PlaceAnalysis& place = record.places.emplace_back();
    place.index = i;
    place.kind = i == 0 ? "attention" : i == 1 ? "ffn" : "close";
    place.lens.agreement = 0.25 * static_cast<double>(i + 2);
    for (const std::string& name : streams) {
      place.streams.push_back({.name = name, .values = {.norm = static_cast<double>(i + 1)}});
      place.streams.back().lens.agreement = 0.125;
    }
    if (i < 2) place.branch = runs::BranchAnalysis{.loss_without = 3 + static_cast<double>(i)};
  }
  record.ranges = {{0, 1, 4.5}};
  return record;
}

json data_of(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"report-data\">";
  const size_t from = page.find(open) + open.size();
  return json::parse(page.substr(from, page.find("</script>", from) - from));
}

const json& chart_of(const json& data, const std::string& title) {
  for (const json& section : data["sections"]) {
    for (const json& chart : section["charts"]) {
      if (chart["title"] == title) return chart;
    }
  }
  throw std::runtime_error("no chart " + title);
}

TEST(AnalysisPage, HoldsTheNumbersByDepth) {
  const json data = data_of(analysis_page({{analysis("siamese", {"X", "Y"})}, {analysis("pre", {"h"})}}));
  EXPECT_EQ(data["title"], "2 analyses compared");
  EXPECT_EQ(data["analyses"][1]["scheme"], "pre");
  const json& norms = chart_of(data, "Norm")["panels"];
  ASSERT_EQ(norms.size(), 2U);
  EXPECT_EQ(norms[0][1], (json{{"name", "Y"}, {"x", {0, 1, 2}}, {"y", {1, 2, 3}}}));
  EXPECT_EQ(norms[1][0]["name"], "h");
  const json& lens = chart_of(data, "Agreement with the output")["panels"];
  ASSERT_EQ(lens[0].size(), 3U);
  EXPECT_EQ(lens[0][2], (json{{"name", "all streams"}, {"x", {0, 1, 2}}, {"y", {0.5, 0.75, 1}}}));
  ASSERT_EQ(lens[1].size(), 1U);  // of one stream, all is that one
  const json& left_out = chart_of(data, "One sublayer left out")["panels"][0];
  EXPECT_EQ(left_out[0], (json{{"name", "attention"}, {"x", {0}}, {"y", {3}}}));
  EXPECT_EQ(left_out[2]["y"], (json{2.5, 2.5, 2.5}));
  EXPECT_EQ(chart_of(data, "Blocks left out")["panels"][0][0]["y"], (json{4.5}));
  EXPECT_EQ(data["analyses"][0]["sites"][1]["streams"], (json{"X", "Y"}));
  EXPECT_EQ(data["analyses"][0]["changed_loss"], 2.5);
  EXPECT_TRUE(data["analyses"][0]["effective_depth"].is_null());
  EXPECT_THROW(chart_of(data, "Mixing"), std::runtime_error);  // measured by none
}

TEST(AnalysisPage, SaysHowMuchOfTheDepthIsUsed) {
  runs::AnalysisRecord record = analysis("siamese", {"X", "Y"});
  EXPECT_THROW(chart_of(data_of(analysis_page({{record}})), "Cosine of the branch with the stream"),
               std::runtime_error);
  EXPECT_EQ(analysis_summary(record).find("effective depth"), std::string::npos);
  for (size_t i = 0; i < 2; ++i) record.places[i].streams[1].branch_cosine = 0.25 - static_cast<double>(i);
  record.effective_depth = 1;
  record.peaks = {{.stream = "X", .token = 7, .text = "the"}};
  const json data = data_of(analysis_page({{record}}));
  EXPECT_EQ(chart_of(data, "Cosine of the branch with the stream")["panels"][0],
            (json{{{"name", "Y"}, {"x", {0, 1}}, {"y", {0.25, -0.75}}}}));
  EXPECT_EQ(data["analyses"][0]["effective_depth"], 1);
  EXPECT_EQ(data["analyses"][0]["peaks"][0]["text"], "the");
  EXPECT_NE(analysis_summary(record).find("effective depth: 1 of 2 sites\n"), std::string::npos);
  EXPECT_NE(analysis_summary(record).find("12.5 % of tokens"), std::string::npos);
  record.family = "vit";
  EXPECT_NE(analysis_summary(record).find("12.5 % of images"), std::string::npos);
}

// What a changed loss is to be held against: that of the same samples, not that of all.
TEST(AnalysisPage, EveryChangedLossStandsBesideTheUnchangedOne) {
  runs::AnalysisRecord siamese = analysis("siamese", {"X", "Y"});
  for (runs::PlaceAnalysis& place : siamese.places) place.streams[0].loss_zeroed = place.streams[0].loss_frozen = 4;
  const json data = data_of(analysis_page({{siamese}, {analysis("pre", {"h"})}}));
  for (const char* const title : {"One sublayer left out", "Blocks left out", "Zeroed", "Held"}) {
    const json& panels = chart_of(data, title)["panels"];
    const json& last = panels[0].back();
    EXPECT_EQ(last["name"], "nothing changed") << title;
    EXPECT_EQ(last["y"][0], 2.5) << title;
    EXPECT_EQ(last["x"], panels[0].size() > 2 ? (json{0, 1, 2}) : panels[0][0]["x"]) << title;
  }
  EXPECT_TRUE(chart_of(data, "Zeroed")["panels"][1].empty());  // of one stream nothing was measured
  const std::string said = analysis_summary(siamese);
  EXPECT_NE(said.find("loss of 0 samples: 2.5 with all, at most 4 without one sublayer (ffn of block 0)\n"),
            std::string::npos)
      << said;
}

TEST(AnalysisPage, SaysWhatWasNotMeasuredOfMany) {
  std::vector<std::string> many;
  for (int i = 0; i < 9; ++i) many.push_back("v" + std::to_string(i));
  runs::AnalysisRecord record = analysis("attn_res", many);
  record.places[0].streams.resize(2);
  for (size_t i : {1, 2}) {
    for (runs::StreamAnalysis& stream : record.places[i].streams) stream.lens = {};
  }
  const std::string words = "more than 8 streams";
  const auto lead = [](const runs::AnalysisRecord& of) {
    return chart_of(data_of(analysis_page({{of}})), "Agreement with the output")["lead"].get<std::string>();
  };
  EXPECT_NE(lead(record).find(words), std::string::npos) << lead(record);
  EXPECT_EQ(lead(analysis("siamese", {"X", "Y"})).find(words), std::string::npos);
}

// Numbers of other data or samples do not compare; other families' not at all.
TEST(AnalysisPage, SaysWhatAnalysesDoNotShare) {
  const runs::AnalysisRecord first = analysis("siamese", {"X", "Y"});
  runs::AnalysisRecord other = analysis("pre", {"h"});
  EXPECT_EQ(unlike({{first}, {other}}), "");
  EXPECT_FALSE(data_of(analysis_page({{first}, {other}})).contains("unlike"));
  other.data = "b.txt";
  other.samples = 8;
  other.changed_samples = 2;
  const std::string said = unlike({{first}, {other}});
  EXPECT_EQ(said, "not of the same: data (\"\" and \"b.txt\"), samples (0 and 8), changed samples (0 and 2)");
  EXPECT_EQ(data_of(analysis_page({{first}, {other}}))["unlike"], said);
  other.data = "b\x1b[2J";
  EXPECT_EQ(unlike({{first}, {other}}).find('\x1b'), std::string::npos);
  other.family = "vit";
  EXPECT_THROW(analysis_page({{first}, {other}}), UsageError);
}

TEST(AnalysisPage, HoldsItsMatrices) {
  DrawnAnalysis first{analysis("siamese", {"X", "Y"})};
  first.arrays = {{"similarity/cka", {2, 2}, {1, 0.25F, 0.25F, std::nanf("")}},
                  {"attention/first", {1, 2, 3}, {0.5F, 9, 9, 0.75F, 9, 9}},
                  {"stream/X/norm", {1, 2}, {1, 2}}};
  const json data = data_of(analysis_page({first, {analysis("pre", {"h"})}}));
  const auto map_of = [&](const std::string& title) {
    for (const json& section : data["sections"]) {
      for (const json& map : section["maps"]) {
        if (map["title"] == title) return map;
      }
    }
    throw std::runtime_error("no map " + title);
  };
  const json cka = map_of("Linear CKA");
  EXPECT_EQ(cka["row"], "place");
  EXPECT_EQ(cka["panels"][0], (json{{"rows", 2}, {"columns", 2}, {"values", {1, 0.25, 0.25, nullptr}}}));
  EXPECT_TRUE(cka["panels"][1].is_null());
  const json sinks = map_of("First token, by head");  // of the positions the first
  EXPECT_EQ(sinks["column"], "head");
  EXPECT_EQ(sinks["panels"][0], (json{{"rows", 1}, {"columns", 2}, {"values", {0.5, 0.75}}}));
  EXPECT_THROW(map_of("Cosine"), std::runtime_error);
  EXPECT_FALSE(cka["by_row"].get<bool>());
  EXPECT_NE(analysis_script_text().find("function depthMap"), std::string_view::npos);
}

TEST(AnalysisPage, DrawsEveryRangeWhereAllWereMeasured) {
  runs::AnalysisRecord all = analysis("siamese", {"X", "Y"});
  all.blocks = 3;
  all.ranges = {{0, 1, 3.5}, {1, 1, 2}, {2, 1, 3}, {0, 2, 4.5}, {1, 2, 4}, {0, 3, 6.5}};
  const json data = data_of(analysis_page({{all}, {analysis("pre", {"h"})}}));
  EXPECT_EQ(chart_of(data, "Blocks left out")["panels"][0].size(), 3U);  // of 1 and 2 blocks; nothing changed
  const auto section = std::find_if(data["sections"].begin(), data["sections"].end(),
                                    [](const json& one) { return one["id"] == "pruning"; });
  ASSERT_EQ((*section)["maps"].size(), 1U);
  const json map = (*section)["maps"][0];
  EXPECT_EQ(map["row"], "first");
  EXPECT_EQ(map["column"], "last");
  EXPECT_EQ(map["panels"][0]["values"], (json{1, 2, 4, nullptr, -0.5, 1.5, nullptr, nullptr, 0.5}));
  EXPECT_TRUE(map["panels"][1].is_null());
  all.ranges[5].first = 7;  // somebody's file
  EXPECT_TRUE(data_of(analysis_page({{all}}))["sections"][2]["maps"].empty());
}

TEST(AnalysisPage, RoutingStandsBesideTheNorms) {
  runs::AnalysisRecord record = analysis("siamese", {"X", "Y"});
  record.family = "moe";
  EXPECT_THROW(chart_of(data_of(analysis_page({{record}})), "Routing beside the norms"), std::runtime_error);
  record.places[1].branch->routing_entropy = 0.75;
  const json data = data_of(analysis_page({{record}}));
  const json panel = chart_of(data, "Routing beside the norms")["panels"][0];
  ASSERT_EQ(panel.size(), 3U);
  EXPECT_EQ(panel[0], (json{{"name", "X"}, {"x", {1}}, {"y", {0.66667}}}));  // 2 of 3
  EXPECT_EQ(panel[2], (json{{"name", "entropy"}, {"x", {1}}, {"y", {0.75}}}));
}

TEST(AnalysisPage, SaysWhoMadeIt) {
  runs::AnalysisRecord record = analysis("pre", {"h"});
  EXPECT_TRUE(data_of(analysis_page({{record}}))["analyses"][0]["made_by"].is_null());
  record.made_by =
      runs::AnalysisMaker{.build = {"0.2.0", "abcdef0123456789", "", "2.13.0"}, .cpu = "Zen", .threads = 2};
  const json maker = data_of(analysis_page({{record}}))["analyses"][0]["made_by"];
  EXPECT_EQ(maker["build"], "siamese 0.2.0 (abcdef0123), LibTorch 2.13.0");
  EXPECT_EQ(maker["cpu"], "Zen");
  EXPECT_NE(analysis_script_text().find("function machineText"), std::string_view::npos);
}

// Where streams become more with depth, a row of few would leave all others one colour.
TEST(AnalysisPage, WeightsOverAGrowingNumberOfStreamsAreScaledByRow) {
  DrawnAnalysis growing{analysis("attn_res", {"v0", "v1"})}, two{analysis("hc", {"s0", "s1"})};
  growing.arrays = {{"depth/weights", {2, 2}, {1, std::nanf(""), 0.5F, 0.5F}}};
  two.arrays = {{"depth/weights", {2, 2}, {1, 0, 0.5F, 0.5F}}};
  const auto by_row = [](const DrawnAnalysis& drawn) {
    const json sections = data_of(analysis_page({drawn}))["sections"];
    for (const json& section : sections) {
      for (const json& map : section["maps"]) return map["by_row"].get<bool>();
    }
    throw std::runtime_error("no map");
  };
  EXPECT_TRUE(by_row(growing));
  EXPECT_FALSE(by_row(two));
}

TEST(AnalysisPage, NamesStayText) {
  runs::AnalysisRecord hostile = analysis("</script><script>alert(1)</script>", {"<img src=x>\x1b[2J\xff"});
  hostile.peaks = {{.stream = "h", .value = 3, .token = 7, .text = "</script><img src=x>\x1b[2J\xff"}};
  const std::string page = analysis_page({{hostile}});
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_EQ(page.find("<img"), std::string::npos);
  EXPECT_EQ(page.find('\x1b'), std::string::npos);
  EXPECT_EQ(page.find("https://"), std::string::npos);
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(analysis_summary(hostile).find('\x1b'), std::string::npos);
  EXPECT_NE(analysis_script_text().find("build();"), std::string_view::npos);
  EXPECT_EQ(analysis_script_text().find("</script"), std::string_view::npos);
}

TEST(AnalysisPage, ReplacesOnlyItself) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("siamese_analysis_page_" + std::to_string(::getpid()) + ".html");
  write_analysis_page(file, {{analysis("pre", {"h"})}});
  write_analysis_page(file, {{analysis("post", {"h"})}});
  EXPECT_NE(io::read_file(file).find("runs/post"), std::string::npos);
  std::ofstream(file) << "mine";
  EXPECT_THROW(write_analysis_page(file, {{analysis("pre", {"h"})}}), UsageError);
  EXPECT_EQ(io::read_file(file), "mine");
  std::filesystem::remove(file);
  EXPECT_THROW(analysis_page({}), UsageError);
}

}  // namespace analysis_pages
}  // namespace
}  // namespace siamese::report
