#include "siamese/runs/event_file.h"

#include <cmath>
#include <fstream>

#include "tests/io/support.h"
#include "tests/runs/support.h"

#include "siamese/io/atomic_file.h"
#include "siamese/io/tensorboard.h"

namespace siamese::runs {
namespace {
namespace events {

class EventFiles : public FolderTest {
 protected:
  void write(const std::string& name, const std::vector<std::string>& lines) {
    std::ofstream out(folder_ / name, std::ios::binary);
    for (const std::string& line : lines) out << line << "\n";
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      if (is_event_file(entry.path().filename().string())) all.push_back(entry.path().filename().string());
    }
    std::sort(all.begin(), all.end());
    return all;
  }
};

std::string step_line(int64_t step, double loss = 2) {
  return to_line(StepRecord{.step = step, .loss = loss, .step_ms = 500});
}
std::string eval_line(int64_t step) { return to_line(EvalRecord{.step = step, .loss = 3, .targets = 4}); }

Stretch stretch(const std::string& started, int64_t from_step) {
  Stretch one;
  one.started = started;
  one.from_step = from_step;
  return one;
}
constexpr double kThen = 1763449200;  // 2025-11-18T07:00:00Z
const std::vector<Stretch> kOne = {stretch("2025-11-18T07:00:00Z", 0)};

std::string step_event(double seconds, int64_t step, double loss = 2) {
  return io::scalar_event(seconds, step, {{"train/loss", loss}, {"train/tokens", 0}, {"train/step_ms", 500}});
}
std::string eval_event(double seconds, int64_t step) { return io::scalar_event(seconds, step, {{"eval/loss", 3}}); }

TEST_F(EventFiles, HoldTheLinesOfARunInOrder) {
  write("metrics.jsonl", {step_line(1), step_line(2), step_line(3)});
  write("eval.jsonl", {eval_line(2), eval_line(3)});
  const EventFile file(folder_, folder_, kOne);
  EXPECT_EQ(file.path().filename(), "events.out.tfevents.1763449200.siamese");
  EXPECT_EQ(io::read_file(file.path()), io::first_events(kThen, 0) + step_event(kThen + 0.5, 1) +
                                            step_event(kThen + 1, 2) + eval_event(kThen + 1, 2) +
                                            step_event(kThen + 1.5, 3) + eval_event(kThen + 1.5, 3));
}

TEST_F(EventFiles, GrowToWhatTheyWouldBeAfterwards) {
  EventFile file(folder_, folder_, kOne);
  EXPECT_EQ(io::read_file(file.path()), io::first_events(kThen, 0));
  file.add_step(step_line(1));
  file.add_step(step_line(2));
  file.add_eval(eval_line(2));
  file.add_step(step_line(3));
  write("metrics.jsonl", {step_line(1), step_line(2), step_line(3)});
  write("eval.jsonl", {eval_line(2)});
  std::filesystem::create_directory(folder_ / "again");
  const EventFile again(folder_, folder_ / "again", kOne);
  EXPECT_EQ(io::read_file(again.path()), io::read_file(file.path()));
}

// Killed after step 3, gone on from the checkpoint of step 2: its steps are there once, under a new name.
TEST_F(EventFiles, AreMadeAnewByAResume) {
  write("metrics.jsonl", {step_line(1), step_line(2), step_line(3, 9)});
  const EventFile old(folder_, folder_, kOne);
  std::ofstream(old.path(), std::ios::app | std::ios::binary) << "torn";
  std::ofstream(folder_ / "events.out.tfevents.17.host.v2") << "another's";
  write("metrics.jsonl", {step_line(1), step_line(2)});
  std::vector<Stretch> two = kOne;
  two.push_back(stretch("2025-11-18T08:00:00Z", 2));
  EventFile file(folder_, folder_, two);
  file.add_step(step_line(3));
  EXPECT_EQ(names(), (std::vector<std::string>{"events.out.tfevents.1763452800.siamese"}));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "events.out.tfevents.17.host.v2"));
  EXPECT_EQ(io::read_file(file.path()), io::first_events(kThen, 0) + step_event(kThen + 0.5, 1) +
                                            step_event(kThen + 1, 2) + step_event(kThen + 3600.5, 3));
  // From the beginning: the earlier stretches made nothing that is still there.
  two.push_back(stretch("2025-11-18T09:00:00Z", 0));
  write("metrics.jsonl", {step_line(1)});
  EXPECT_EQ(io::read_file(EventFile(folder_, folder_, two).path()),
            io::first_events(kThen + 7200, 0) + step_event(kThen + 7200.5, 1));
}

TEST_F(EventFiles, LeaveOutWhatCannotBeRead) {
  write("metrics.jsonl", {step_line(1), "{\"step\":", step_line(3)});
  const EventFile file(folder_, folder_, {});
  EXPECT_EQ(file.path().filename(), "events.out.tfevents.0000000000.siamese");
  EXPECT_EQ(io::read_file(file.path()), io::first_events(0, 0) + step_event(0.5, 1) + step_event(1, 3));
}

// A backup by links keeps what it had.
TEST_F(EventFiles, ABackupByLinksStays) {
  EventFile file(folder_, folder_, kOne);
  std::filesystem::create_hard_link(file.path(), folder_ / "backup");
  file.add_step(step_line(1));
  EXPECT_EQ(io::read_file(folder_ / "backup"), io::first_events(kThen, 0));
  EXPECT_EQ(io::read_file(file.path()), io::first_events(kThen, 0) + step_event(kThen + 0.5, 1));
}

TEST_F(EventFiles, AFullDiskTearsNothing) {
  EventFile file(folder_, folder_, kOne);
  file.add_step(step_line(1));
  const std::string before = io::read_file(file.path());
  {
    const io::FullDisk full(before.size() + 10);  // part of an event would fit
    io::expect_error<SystemError>([&] { file.add_step(step_line(2)); }, {file.path().string()});
  }
  EXPECT_EQ(io::read_file(file.path()), before);
}

TEST(EventTags, SayWhatANumberIs) {
  StepRecord step{.step = 5, .tokens = 7, .loss = kNone, .lr = 0.5, .skipped = true, .extra = {{"balance_loss", 2}}};
  step.sites = {{3, 1, "ffn", 0.25, 1, 2, {{"X", 4, kNone}}}};
  EXPECT_EQ(scalars_of(step), (NamedNumbers{{"train/lr", 0.5},
                                            {"train/tokens", 7},
                                            {"train/skipped", 1},
                                            {"train/balance_loss", 2},
                                            {"depth_grad_norm/site003_ffn", 0.25},
                                            {"depth_branch_in/site003_ffn", 1},
                                            {"depth_branch_out/site003_ffn", 2},
                                            {"depth_X_before/site003_ffn", 4}}));
  EvalRecord eval{.step = 5, .loss = 1};
  eval.accuracy = Accuracy{.correct = 1, .count = 4, .groups = {}};
  eval.sets = {{.name = "a\xff\x1b", .loss = 2}};
  eval.bits_per_byte = 4;
  eval.diffusion = {{"mse", 8}};
  EXPECT_EQ(scalars_of(eval), (NamedNumbers{{"eval/loss", 1},
                                            {"eval/bits_per_byte", 4},
                                            {"eval/accuracy", 0.25},
                                            {"eval/mse", 8},
                                            {"eval/a\\xff\\x1b/loss", 2}}));
  EXPECT_TRUE(is_event_file("events.out.tfevents.0000000012.siamese"));
  for (const char* const name : {"events.out.tfevents..siamese", "events.out.tfevents.1x.siamese",
                                 "events.out.tfevents.1", "events.out.tfevents.1.siamese.tmp", "metrics.jsonl"}) {
    EXPECT_FALSE(is_event_file(name)) << name;
  }
}

}  // namespace events
}  // namespace
}  // namespace siamese::runs
