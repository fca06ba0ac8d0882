#include "siamese/runs/analysis_record.h"

#include <cmath>
#include <fstream>

#include "tests/runs/support.h"
#include <nlohmann/json.hpp>

namespace siamese::runs {
namespace {
namespace analyses {

AnalysisRecord some_analysis() {
  AnalysisRecord record{.run = "runs/x/step6", .scheme = "siamese", .family = "lm", .step = 6, .loss = 2.5};
  PlaceAnalysis& place = record.places.emplace_back();
  place.kind = "attention";
  place.streams = {{.name = "X", .values = {.norm = 3, .rms = 1, .max = 9, .kurtosis = 2.5}, .gradient = 0.5}};
  place.streams[0].branch_cosine = -0.125;
  place.streams[0].lens = {.agreement = 0.25, .kl = 1.5, .distance = kNone, .loss = 4};
  place.pairs = {{"X", "Y", -0.5}};
  place.branch = BranchAnalysis{.input = {.rms = 1}, .output = {.rms = 2}, .loss_without = 3};
  record.places.push_back({.index = 1, .block = 1, .kind = "close"});
  record.made_by = AnalysisMaker{.build = {"0.2.0", "abc", "", "2.13.0"}, .cpu = "Zen", .threads = 2, .command = "c"};
  record.ranges = {{0, 1, 2.75}};
  record.peaks = {
      {.place = 1, .stream = "X", .value = -9, .sample = 1, .position = 2, .channel = 3, .token = 4, .text = "\n"}};
  record.effective_depth = 1;
  return record;
}

TEST(AnalysisRecord, IsReadAsItWasWritten) {
  const AnalysisRecord record = some_analysis();
  const std::string text = to_json(record);
  const AnalysisRecord read = read_analysis(text, "here");
  EXPECT_EQ(to_json(read), text);
  EXPECT_EQ(read.places[0].streams[0].lens.kl, 1.5);
  EXPECT_TRUE(std::isnan(read.places[0].streams[0].lens.distance));
  EXPECT_EQ(read.places[0].branch->loss_without, 3);
  EXPECT_FALSE(read.places[1].branch);
  EXPECT_EQ(read.peaks[0].token, 4);
  EXPECT_EQ(read.peaks[0].text, "\n");
  EXPECT_EQ(read.places[0].streams[0].branch_cosine, -0.125);
  EXPECT_EQ(read.effective_depth, 1);
  EXPECT_EQ(nlohmann::json::parse(text)["schema"], kAnalysisSchema);
}

// As somebody might edit it: without the checksum of what it was.
nlohmann::ordered_json unsealed() {
  auto object = nlohmann::ordered_json::parse(to_json(some_analysis()));
  object.erase("checksum");
  return object;
}

TEST(AnalysisRecord, EveryDigitThatChangesIsNamed) {
  const std::string text = to_json(some_analysis());
  int digits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] < '0' || text[i] > '9') continue;
    std::string changed = text;
    changed[i] = changed[i] == '7' ? '8' : '7';
    EXPECT_NE(error_of([&] { read_analysis(changed, "a.json"); }), "") << changed.substr(i, 20);
    ++digits;
  }
  EXPECT_GT(digits, 50);
  std::string changed = text;
  changed.replace(changed.find("-0.125"), 6, "-0.625");
  expect_said(error_of([&] { read_analysis(changed, "a.json"); }), "a.json: checksum: expected");
}

// Schema 2 had no cosine of the branch, no effective depth and no text of a token; schema 1 did not say who made it.
TEST(AnalysisRecord, TheSchemasBeforeAreRead) {
  auto object = unsealed();
  EXPECT_EQ(read_analysis(object.dump(), "here").made_by->build.libtorch, "2.13.0");
  object["schema"] = 2;
  object.erase("effective_depth");
  object["places"][0]["streams"][0].erase("branch_cosine");
  object["peaks"][0].erase("text");
  AnalysisRecord read = read_analysis(object.dump(), "here");
  EXPECT_TRUE(read.made_by);
  EXPECT_TRUE(std::isnan(read.effective_depth));
  EXPECT_TRUE(std::isnan(read.places[0].streams[0].branch_cosine));
  EXPECT_EQ(read.peaks[0].text, "");
  auto spoiled = object;
  spoiled["places"] = 3;
  expect_said(error_of([&] { read_analysis(spoiled.dump(), "here"); }), "places: expected a list");
  spoiled["places"] = {3};
  expect_said(error_of([&] { read_analysis(spoiled.dump(), "here"); }), "places[0]");
  auto newer = unsealed();  // a file of this schema has them all
  newer["places"][0]["streams"][0].erase("branch_cosine");
  expect_said(error_of([&] { read_analysis(newer.dump(), "here"); }), "branch_cosine");
  object["schema"] = 1;
  object.erase("made_by");
  read = read_analysis(object.dump(), "here");
  EXPECT_FALSE(read.made_by);
  EXPECT_EQ(read.peaks[0].token, 4);
  const auto again = nlohmann::json::parse(to_json(read));
  EXPECT_EQ(again["schema"], 3);
  EXPECT_TRUE(again["made_by"].is_null());
}

TEST(AnalysisRecord, AWrongOneIsNamed) {
  const auto said = [](const std::function<void(nlohmann::ordered_json&)>& spoil) {
    auto object = unsealed();
    spoil(object);
    return error_of([&] { read_analysis(object.dump(), "a.json"); });
  };
  expect_said(said([](auto& object) { object["schema"] = 4; }), "a.json: schema: expected 1 to 3");
  expect_said(said([](auto& object) { object.erase("made_by"); }), "made_by");
  expect_said(said([](auto& object) { object["made_by"]["started"] = ""; }), "made_by: unknown key 'started'");
  expect_said(said([](auto& object) { object["kind"] = "run"; }), "kind: expected 'analysis'");
  expect_said(said([](auto& object) { object["loss"] = "low"; }), "loss: expected a number");
  expect_said(said([](auto& object) { object.erase("ranges"); }), "ranges: expected a list");
  expect_said(said([](auto& object) { object["extra"] = 1; }), "unknown key 'extra'");
  expect_said(said([](auto& object) { object["places"][0]["streams"][0].erase("gradient"); }),
              "places[0]: streams[0]: gradient");
  expect_said(said([](auto& object) { object["places"][0]["branch"] = 3; }),
              "places[0]: branch: expected a JSON object");
  expect_said(said([](auto& object) { object["places"][0]["schema"] = 1; }), "unknown key 'schema'");
  expect_said(error_of([] { read_analysis("[]", "a.json"); }), "a.json");
}

class AnalysisFolder : public FolderTest {};

TEST_F(AnalysisFolder, IsReadByItsName) {
  std::ofstream(folder_ / kAnalysisFile) << to_json(some_analysis());
  EXPECT_EQ(read_analysis_file(folder_).scheme, "siamese");
  expect_said(error_of([&] { read_analysis_file(folder_ / "none"); }), "none/analysis.json");
}

}  // namespace analyses
}  // namespace
}  // namespace siamese::runs
