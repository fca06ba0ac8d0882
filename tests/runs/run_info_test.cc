#include "siamese/runs/run_info.h"

#include "tests/runs/support.h"
#include <nlohmann/json.hpp>

#include "siamese/io/atomic_file.h"
#include "siamese/runs/sweep_file.h"

namespace siamese::runs {
namespace {

using Json = nlohmann::ordered_json;

RunInfo full_info() {
  RunInfo info;
  info.id = "0123456789abcdef";
  info.status = RunStatus::stopped;
  info.scheme = "siamese";
  info.label = "mine";
  info.step = 30;
  info.saved = 20;
  info.steps = 100;
  info.parameters = 12345;
  info.seed = 18446744073709551615U;
  info.lr = 0.002;
  info.step_flops = 6e9;
  info.message = "disk full";
  info.set = {"model.width", "optim.lr"};
  info.says_set = true;
  info.folder = "/somewhere";
  info.data = {{2, 100, 0xfeed}, {1, 10, 0xbeef}};
  info.stretches = {{.build = {"0.3.0", "abc", "", "2.13.0"}, .threads = 2, .to_step = 30}};
  return info;
}

TEST_F(FolderTest, ReadsWhatItWrites) {
  write_run_file(folder_, full_info());
  const auto read = read_run_file(folder_);
  ASSERT_TRUE(read);
  EXPECT_EQ(to_json(*read), to_json(full_info()));
  EXPECT_EQ(read->status, RunStatus::stopped);
  EXPECT_EQ(read->seed, full_info().seed);
  EXPECT_EQ(read->step_flops, 6e9);
  EXPECT_EQ(read->set, full_info().set);
  EXPECT_EQ(read->data, full_info().data);
  EXPECT_EQ(read->stretches[0].build.commit, "abc");
  EXPECT_FALSE(read_run_file(folder_ / "none"));
  const Json json = Json::parse(to_json(*read));
  EXPECT_EQ(json["schema"], 2);
  EXPECT_EQ(json["kind"], "run");
}

TEST(RunInfo, WhatIsNoRunOfOursIsRefused) {
  const Json good = Json::parse(to_json(full_info()));
  const auto said = [](const Json& json) { return error_of([&] { read_run_info(json.dump(), "run.json"); }); };
  EXPECT_EQ(said(good), "");
  for (const auto& [key, value] :
       {std::pair{"schema", Json(3)}, std::pair{"kind", Json("sweep")}, std::pair{"status", Json("lost")},
        std::pair{"step", Json("x")}, std::pair{"seed", Json(-1)}, std::pair{"set", Json(7)},
        std::pair{"data", Json::object()}, std::pair{"stretches", Json{{"a", 1}}}}) {
    Json bad = good;
    bad[key] = value;
    expect_said(said(bad), std::string("run.json: ") + key);
  }
  for (const char* const key : {"status", "scheme", "label", "parameters", "lr"}) {
    Json bad = good;
    bad.erase(key);
    expect_said(said(bad), std::string("run.json: ") + key + ": expected");
  }
  Notes notes;
  const RunInfo read = read_run_info(R"({"status":"finished","lr":"x"})", "run.json", &notes);
  EXPECT_EQ(read.status, RunStatus::finished);
  EXPECT_EQ(notes.size(), 1u);
}

TEST(RunInfo, ReadsVersion010) {
  for (const char* const family : {"lm", "moe", "vit", "dit"}) {
    const RunInfo info = read_run_info(io::read_file(fixture(std::string(family) + "/run.json")), family);
    EXPECT_FALSE(info.scheme.empty());
    EXPECT_GT(info.parameters, 0);
    EXPECT_FALSE(info.saved);
    EXPECT_FALSE(info.says_set);
    EXPECT_TRUE(info.stretches.empty());
  }
}

TEST(SweepFile, ReadsWhatItWritesAndVersion010) {
  const SweepFile sweep{"demo", {{"pre-seed1", "pre", 0.002, 1}, {"x", "", kNone, std::nullopt}}};
  EXPECT_EQ(to_json(read_sweep_file(to_json(sweep), "s")), to_json(sweep));
  EXPECT_EQ(read_sweep_file(to_json(sweep), "s").runs[0].seed, 1u);
  for (const char* const bad :
       {"{\"runs\":", "[]", "{\"name\":\"x\"}", "{\"runs\":7}", "{\"runs\":{}}", "{\"runs\":[{\"variant\":\"pre\"}]}",
        "{\"runs\":[{\"dir\":\"\"}]}", "{\"schema\":3,\"runs\":[]}", "{\"kind\":\"run\",\"runs\":[]}"}) {
    EXPECT_NE(error_of([&] { read_sweep_file(bad, "s"); }), "") << bad;
  }
  EXPECT_TRUE(is_sweep_file(fixture("sweep/sweep.json")));
  EXPECT_FALSE(is_sweep_file(fixture("lm/run.json")));
}

}  // namespace
}  // namespace siamese::runs
