#include "siamese/runs/provenance.h"

#include "tests/runs/support.h"
#include <nlohmann/json.hpp>

namespace siamese::runs {
namespace {

Stretch stretch_of(const std::string& commit, int64_t from, int64_t to) {
  return {.build = {"0.3.0", commit, "", "2.13.0"},
          .simd = "AVX3",
          .precision = "float32",
          .device = "cpu",
          .threads = 2,
          .ranks = 1,
          .cpu = "a CPU",
          .command = "siamese train x",
          .started = "2026-11-17T11:00:0" + std::to_string(from) + "Z",
          .ended = "2026-11-17T11:00:0" + std::to_string(to) + "Z",
          .from_step = from,
          .to_step = to};
}

TEST(Provenance, AStretchReadsBack) {
  Stretch stretch = stretch_of(std::string(40, 'a'), 3, 5);
  stretch.build.dirty = "1f0c77a2";
  const auto json = to_json(stretch);
  const Stretch read = read_stretch(json, "here");
  EXPECT_EQ(to_json(read), json);
  EXPECT_EQ(read.build, stretch.build);
  EXPECT_EQ(read.threads, 2);
  EXPECT_EQ(read.from_step, 3);
  auto wrong = json;
  wrong["threads"] = "two";
  expect_said(error_of([&] { read_stretch(wrong, "r: stretches"); }), "r: stretches: threads: expected");
}

TEST(Provenance, NeighboursOfOneKindAreJoined) {
  const auto all = joined({stretch_of("a", 0, 1), stretch_of("a", 1, 2), stretch_of("b", 2, 3), stretch_of("a", 3, 4)});
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].from_step, 0);
  EXPECT_EQ(all[0].to_step, 2);
  EXPECT_EQ(all[0].started, "2026-11-17T11:00:00Z");
  EXPECT_EQ(all[0].ended, "2026-11-17T11:00:02Z");
  const auto builds = builds_of(all);
  ASSERT_EQ(builds.size(), 2u);
  EXPECT_EQ(builds[1].commit, "b");
  Stretch other = stretch_of("a", 1, 2);
  other.threads = 7;
  EXPECT_EQ(joined({stretch_of("a", 0, 1), other}).size(), 2u);
}

TEST(Provenance, ABuildInWords) {
  EXPECT_EQ((Build{"0.3.0", "0123456789abcdef", "", "2.13.0"}.text()), "siamese 0.3.0 (0123456789), LibTorch 2.13.0");
  EXPECT_EQ((Build{"0.3.0", "0123456789abcdef", "feedbeef", "2.13.0"}.text()),
            "siamese 0.3.0 (0123456789, changed feedbeef), LibTorch 2.13.0");
  EXPECT_EQ((Build{"0.1.0", "", "", ""}.text()), "siamese 0.1.0");
}

TEST(Provenance, ThisProcess) {
  const std::string now = utc_now();
  ASSERT_EQ(now.size(), 20u) << now;
  EXPECT_EQ(now[10], 'T');
  EXPECT_EQ(now.back(), 'Z');
  EXPECT_TRUE(command_line().starts_with("test_runs")) << command_line();  // without its folder
  EXPECT_FALSE(this_source().version.empty());
}

}  // namespace
}  // namespace siamese::runs
