// Data that are not what they were when a run goes on.
#include "tests/train/tiny_run.h"

#include "siamese/base/check.h"
#include "siamese/io/run_dir.h"
#include "siamese/train/trainer_state.h"

namespace siamese::train {
namespace changed_data_test {

namespace fs = std::filesystem;

struct Heard : Observer {
  void warned(const std::string& message) override { warnings.push_back(message); }
  std::vector<std::string> warnings;
};

std::string text_of(int seed) {
  std::string text;
  for (int i = 0; i < 150; ++i) text += std::to_string(i * i + seed) + (i % 7 == 0 ? "\n" : " ");
  return text;
}

// A run on three files that was stopped at step 5.
struct Stopped {
  explicit Stopped(const std::string& name) : folder(name) {
    for (const auto& [file, seed] : {std::pair{"a.txt", 1}, {"b.txt", 2}, {"d.txt", 4}}) put(file, text_of(seed));
    put("val.txt", text_of(9), "val");
    start_run(config(), run(), false, "", stop_after(5));
  }
  RunConfig config() const {
    return tiny_config(
        {"data.source=text", "data.train=" + (folder / "data").string(), "data.val=" + (folder / "val").string()});
  }
  void put(const std::string& name, const std::string& content, const std::string& side = "data") const {
    fs::create_directories(folder / side);
    io::write_file_atomic(folder / side / name, content);
  }
  fs::path run() const { return folder / "run"; }
  std::string refusal() const {
    try {
      resume_run(run(), {});
    } catch (const DataError& error) {
      return error.what();
    }
    return "resumed";
  }
  TemporaryFolder folder;
};

TEST(ChangedData, IsRefusedWithTheNameOfTheFile) {
  const Stopped stopped("changed_data");
  const fs::path data = stopped.folder / "data";
  const auto expect_refused = [&](const fs::path& file, const std::string& what) {
    EXPECT_EQ(stopped.refusal().find(file.string() + ": " + what), 0U) << stopped.refusal();
  };
  std::string other = text_of(2);
  other[300] = other[300] == '1' ? '2' : '1';
  stopped.put("b.txt", other);
  expect_refused(data / "b.txt", "expected " + std::to_string(other.size()) + " bytes with the hash ");
  stopped.put("b.txt", text_of(2).substr(0, other.size() / 2));
  expect_refused(data / "b.txt", "expected ");
  stopped.put("b.txt", text_of(2));
  stopped.put("c.txt", text_of(3));
  expect_refused(data / "c.txt", "was added (data.train: 3 files then, 4 now)");
  fs::remove(data / "c.txt");
  fs::rename(data / "a.txt", data / "e.txt");
  expect_refused(data / "b.txt", "stands where " + (data / "a.txt").string() + " stood");
  fs::rename(data / "e.txt", data / "a.txt");
  fs::remove(data / "a.txt");
  expect_refused(data / "a.txt", "is missing (data.train: 3 files then, 2 now)");
  stopped.put("a.txt", text_of(1));
  stopped.put("val.txt", text_of(8), "val");
  expect_refused(stopped.folder / "val" / "val.txt", "expected ");
  EXPECT_NE(stopped.refusal().find("--accept-changed-data"), std::string::npos);
  EXPECT_EQ(io::read_latest(stopped.run()), "step5");
  stopped.put("val.txt", text_of(9), "val");
  EXPECT_EQ(resume_run(stopped.run(), {}).status, RunStatus::finished);
}

TEST(ChangedData, MayBeAcceptedAndIsRecorded) {
  const Stopped stopped("accepted_data");
  stopped.put("b.txt", text_of(7));
  Heard heard;
  RunHooks hooks = stop_after(2);
  hooks.observer = &heard;
  ASSERT_EQ(resume_run(stopped.run(), hooks, true).status, RunStatus::stopped);
  ASSERT_EQ(heard.warnings.size(), 1U);
  EXPECT_NE(heard.warnings[0].find("b.txt: expected "), std::string::npos) << heard.warnings[0];
  // The new data are the run's from here on.
  ASSERT_EQ(resume_run(stopped.run(), {}).status, RunStatus::finished);
  const TrainerState state = read_trainer_state(stopped.run() / "step12" / "trainer.json");
  ASSERT_EQ(state.accepted_data.size(), 1U);
  EXPECT_EQ(state.accepted_data[0].find("step 5: "), 0U) << state.accepted_data[0];
  EXPECT_EQ(state.data.train.size(), 3U);
  EXPECT_EQ(state.data.val.size(), 1U);
}

TEST(ChangedData, MovedDataAreTheSame) {
  const Stopped stopped("moved_data");
  start_run(stopped.config(), stopped.folder / "whole", false, "", {});
  fs::rename(stopped.folder / "data", stopped.folder / "moved");
  fs::rename(stopped.folder / "moved" / "a.txt", stopped.folder / "moved" / "aa.txt");
  std::string text = io::read_file(stopped.run() / "config.yaml");
  const std::string before = (stopped.folder / "data").string();
  text.replace(text.find(before), before.size(), (stopped.folder / "moved").string());
  io::write_file_atomic(stopped.run() / "config.yaml", text);
  Heard heard;
  ASSERT_EQ(resume_run(stopped.run(), {&heard, {}}).status, RunStatus::finished);
  ASSERT_EQ(heard.warnings.size(), 1U);
  EXPECT_NE(heard.warnings[0].find("data.train: was "), std::string::npos) << heard.warnings[0];
  for (const char* const file : {"model.safetensors", "optim.safetensors"}) {
    EXPECT_EQ(io::read_file(stopped.run() / "step12" / file),
              io::read_file(stopped.folder / "whole" / "step12" / file));
  }
}

TEST(ChangedData, AStateOfAnOlderVersionDoesNotKnow) {
  const Stopped stopped("older_data");
  const fs::path state = stopped.run() / "step5" / "trainer.json";
  auto json = nlohmann::json::parse(io::read_file(state));
  for (const char* const key : {"checksum", "config", "data"}) ASSERT_EQ(json.erase(key), 1U) << key;
  io::write_file_atomic(state, json.dump());
  stopped.put("b.txt", text_of(7));
  EXPECT_EQ(resume_run(stopped.run(), {}).status, RunStatus::finished);
}

}  // namespace changed_data_test
}  // namespace siamese::train
