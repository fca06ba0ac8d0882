#include "siamese/runs/step_record.h"

#include <cmath>

#include "tests/runs/support.h"
#include <nlohmann/json.hpp>

#include "siamese/runs/lines.h"

namespace siamese::runs {
namespace {

StepRecord full_record() {
  StepRecord record{.step = 50,
                    .tokens = 51200,
                    .loss = 2.25,
                    .grad_norm = kNone,
                    .lr = 0.001,
                    .tokens_per_s = 31000.4,
                    .samples_per_s = 30.254,
                    .step_ms = 33.337,
                    .skipped = true,
                    .skip_reason = "loss",
                    .skip_z = 7.5,
                    .extra = {{"balance_loss", 1.5}, {"expert_max_load", kNone}},
                    .experts = {{3, {0.25, 0.123456789}}},
                    .sites = {{7, 3, "ffn", 0.5, 1.5, 2.5, {{"X", 1.25, kNone}, {"Y", 3, 1}}}}};
  return record;
}

TEST(StepRecord, ReadsWhatItWrites) {
  const std::string line = to_line(full_record());
  const StepRecord read = read_step(line, "here");
  EXPECT_EQ(to_line(read), line);
  EXPECT_EQ(read.step, 50);
  EXPECT_EQ(read.tokens, 51200);
  EXPECT_EQ(read.loss, 2.25);
  EXPECT_TRUE(std::isnan(read.grad_norm));
  EXPECT_EQ(read.tokens_per_s, 31000);
  EXPECT_EQ(read.samples_per_s, 30.25);
  EXPECT_EQ(read.step_ms, 33.34);
  EXPECT_TRUE(read.skipped);
  EXPECT_EQ(read.skip_reason, "loss");
  EXPECT_EQ(read.skip_z, 7.5);
  EXPECT_EQ(number_of(read.extra, "balance_loss"), 1.5);
  ASSERT_EQ(read.extra.size(), 2u);
  EXPECT_TRUE(std::isnan(read.extra[1].second));
  ASSERT_EQ(read.experts.size(), 1u);
  EXPECT_EQ(read.experts[0].load, (std::vector<double>{0.25, 0.12346}));
  ASSERT_EQ(read.sites.size(), 1u);
  EXPECT_EQ(read.sites[0].site, 7);
  EXPECT_EQ(read.sites[0].kind, "ffn");
  EXPECT_EQ(read.sites[0].streams[1].name, "Y");
  EXPECT_TRUE(std::isnan(read.sites[0].streams[0].after));
}

TEST(StepRecord, AFieldOfAnotherTypeIsNamedOrNoted) {
  const auto said = [](const std::string& line) { return error_of([&] { read_step(line, "m: line 2"); }); };
  expect_said(said(R"({"loss":1})"), "m: line 2: step: expected a whole number, got nothing");
  expect_said(said(R"({"step":0})"), "m: line 2: step: expected a whole number >= 1, got '0'");
  expect_said(said(R"({"step":18446744073709551615})"), "m: line 2: step: expected a whole number");
  expect_said(said(R"({"step":1,"loss":"big"})"), "m: line 2: loss: expected a number or null, got '\"big\"'");
  expect_said(said(R"({"step":1,"skipped":1})"), "m: line 2: skipped: expected true or false");
  expect_said(said(R"({"step":1,"mine":[1]})"), "m: line 2: mine: expected a number or null");
  expect_said(said(R"({"step":1,"sites":[{"streams":[7]}]})"), "m: line 2: sites: streams: expected a JSON object");
  expect_said(said(R"({"step":1,"experts":[{"load":["x"]}]})"), "m: line 2: experts: load: expected a list of numbers");
  Notes notes;
  const StepRecord read =
      read_step(R"({"step":1,"loss":2,"grad_norm":"big","sites":[{"block":1,"streams":[7]},3]})", "m: line 2", &notes);
  EXPECT_EQ(read.loss, 2);
  EXPECT_TRUE(std::isnan(read.grad_norm));
  EXPECT_EQ(read.sites.size(), 1u);
  EXPECT_EQ(notes.size(), 3u);
  EXPECT_NE(error_of([&] { read_step("{\"loss\":1}", "m", &notes); }), "");  // without a step it is no step
}

TEST(StepRecord, ReadsEveryLineOfVersion010) {
  for (const char* const family : {"lm", "moe", "vit", "dit"}) {
    size_t lines = 0;
    bool sites = false;
    for_each_line(fixture(std::string(family) + "/metrics.jsonl"),
                  [&](std::string_view line, const std::string& where, Notes* notes) {
                    const StepRecord record = read_step(line, where, notes);
                    EXPECT_EQ(record.step, static_cast<int64_t>(++lines));
                    EXPECT_TRUE(std::isfinite(record.loss));
                    sites |= !record.sites.empty();
                  });
    EXPECT_GE(lines, 4u) << family;
    EXPECT_TRUE(sites) << family;
  }
}

}  // namespace
}  // namespace siamese::runs
