#include "siamese/runs/record_line.h"

#include <cmath>

#include "tests/runs/support.h"
#include <nlohmann/json.hpp>

#include "siamese/runs/lines.h"

namespace siamese::runs {
namespace {

using Json = nlohmann::ordered_json;

RecordLine full_line() {
  RecordLine line;
  line.sweep = "s";
  line.dir = "pre-seed1";
  line.variant = line.scheme = "pre";
  line.lr = 0.002;
  line.seed = 1;
  line.config = {{"model.width", "64"}, {"data.train", "[a.txt]"}};
  line.data = {{1, 5, 0xabc}, {}};
  line.summary.steps = 2;
  line.summary.train_loss = 1.25;
  line.summary.baseline = 2.25;
  line.summary.step_flops = 6e9;
  line.summary.accuracy = Accuracy{1, 2, {{"+", 1, 1, 2}}};
  line.summary.measures = {{"top1", 0.5}};
  line.summary.curve = {{1, 2}, {2, 1.23456789}, {3, kNone}};
  Stretch stretch;
  stretch.build = {"0.3.0", "abc", "", "2.13.0"};
  stretch.to_step = 1;
  line.stretches = {stretch, stretch};  // joined when written
  line.stretches[1].to_step = 2;
  return line;
}

TEST(RecordLine, ReadsWhatItWrites) {
  const std::string text = to_line(full_line());
  const RecordLine read = read_record_line(text, "here");
  EXPECT_EQ(to_line(read), text);
  EXPECT_EQ(read.config, full_line().config);
  EXPECT_EQ(read.data, full_line().data);
  ASSERT_EQ(read.stretches.size(), 1u);
  EXPECT_EQ(read.stretches[0].to_step, 2);
  EXPECT_EQ(read.summary.curve.loss[1], 1.2346);
  EXPECT_EQ(read.summary.baseline, 2.25);
  EXPECT_EQ(read.summary.step_flops, 6e9);
  EXPECT_EQ(read.summary.accuracy->groups.size(), 1u);
  EXPECT_EQ(Json::parse(text)["kind"], "result");
}

TEST(RecordLine, WhatIsWrongIsNamed) {
  const Json good = Json::parse(to_line(full_line()));
  const auto said = [](Json json) {  // sealed again: only the field is wrong
    for (const char* const key : {"schema", "kind", "checksum"}) json.erase(key);
    return error_of([&] { read_record_line(sealed_line("result", json), "r.jsonl: line 3"); });
  };
  EXPECT_EQ(said(good), "");
  for (const char* const key : {"sweep", "dir", "status", "config", "val_loss", "seed", "curve", "steps"}) {
    Json bad = good;
    bad.erase(key);
    expect_said(said(bad), std::string("r.jsonl: line 3: ") + key + ": expected");
  }
  for (const auto& [key, value] :
       {std::pair{"status", Json("running")}, std::pair{"dir", Json("")}, std::pair{"seed", Json(-1)},
        std::pair{"config", Json{{"a", 1}}}, std::pair{"measures", Json{{"a", "x"}}}, std::pair{"data", Json{{"a", 1}}},
        std::pair{"curve", Json{{"steps", {2, 1}}, {"loss", {1, 1}}, {"grad_norm", {1, 1}}}}}) {
    Json bad = good;
    bad[key] = value;
    expect_said(said(bad), std::string("r.jsonl: line 3: ") + key);
  }
}

// Every line that was ever committed, and what it says of its maker.
TEST(RecordLine, ReadsEveryCommittedRecord) {
  const std::string results = std::string(SIAMESE_SOURCE_DIR) + "/docs/results/";
  size_t lines = 0;
  for (const std::string& file : {results + "stability.jsonl", results + "depth.jsonl", results + "ablation.jsonl",
                                  results + "families.jsonl", results + "upcycle.jsonl", fixture("record.jsonl")}) {
    for_each_line(file, [&](std::string_view text, const std::string& where, Notes*) {
      const RecordLine line = read_record_line(text, where);
      ASSERT_EQ(line.stretches.size(), 1u) << where;
      EXPECT_FALSE(line.stretches[0].build.version.empty()) << where;
      EXPECT_EQ(line.stretches[0].build.libtorch, "2.13.0") << where;
      EXPECT_EQ(read_record_line(to_line(line), where).summary.train_loss, line.summary.train_loss) << where;
      ++lines;
    });
  }
  EXPECT_GT(lines, 200u);
}

TEST(RecordLine, TheMakerOfALineOfSchema1) {
  Json old = Json::parse(to_line(full_line()));
  for (const char* const key : {"kind", "checksum", "stretches", "data"}) old.erase(key);
  old["schema"] = 1;
  old["threads"] = 2;
  old["cpu"] = "a CPU";
  old["version"] = "siamese 0.1.0, LibTorch 2.13.0, AVX3 kernels";
  const RecordLine line = read_record_line(old.dump(), "here");
  ASSERT_EQ(line.stretches.size(), 1u);
  EXPECT_EQ(line.stretches[0].build, (Build{"0.1.0", "", "", "2.13.0"}));
  EXPECT_EQ(line.stretches[0].simd, "AVX3");
  EXPECT_EQ(line.stretches[0].threads, 2);
  EXPECT_EQ(line.stretches[0].cpu, "a CPU");
  EXPECT_TRUE(line.data.empty());
}

}  // namespace
}  // namespace siamese::runs
