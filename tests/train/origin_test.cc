// What run.json says beside config.yaml: who made a run, which keys were chosen, and where its paths start.
#include "tests/train/tiny_run.h"

#include "siamese/base/check.h"
#include "siamese/config/fields.h"
#include "siamese/runs/run_info.h"
#include "siamese/train/checkpoint.h"
#include "siamese/train/config_origin.h"
#include "siamese/train/provenance.h"

namespace siamese::train {
namespace {

namespace fs = std::filesystem;

runs::RunInfo info_of(const fs::path& run) { return runs::read_run_file(run).value(); }

// Works in another folder for a while.
class WorkingIn {
 public:
  explicit WorkingIn(const fs::path& folder) : before_(fs::current_path()) {
    fs::create_directories(folder);
    fs::current_path(folder);
  }
  ~WorkingIn() { fs::current_path(before_); }

 private:
  fs::path before_;
};

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

TEST(Provenance, EveryStretchOfARunIsInItsRunFile) {
  const TemporaryFolder folder("stretches");
  const fs::path run = folder / "run";
  start_run(tiny_config(), run, false, "", stop_after(5));
  ASSERT_EQ(info_of(run).stretches.size(), 1U);
  resume_run(run, {});
  const runs::RunInfo info = info_of(run);
  ASSERT_EQ(info.stretches.size(), 2U);
  EXPECT_EQ(info.stretches[0].from_step, 0);
  EXPECT_EQ(info.stretches[0].to_step, 5);
  EXPECT_EQ(info.stretches[1].from_step, 5);
  EXPECT_EQ(info.stretches[1].to_step, 12);
  for (const runs::Stretch& stretch : info.stretches) {
    EXPECT_EQ(stretch.build, this_build());
    EXPECT_FALSE(stretch.build.libtorch.empty());
    EXPECT_FALSE(stretch.simd.empty());
    EXPECT_EQ(stretch.precision, "float32");
    EXPECT_EQ(stretch.device, "cpu");
    EXPECT_EQ(stretch.threads, 1);
    EXPECT_EQ(stretch.ranks, 1);
    EXPECT_FALSE(stretch.cpu.empty());
    EXPECT_TRUE(stretch.command.starts_with("test_train")) << stretch.command;
    EXPECT_FALSE(stretch.started.empty());
    EXPECT_GE(stretch.ended, stretch.started);
  }
  EXPECT_EQ(runs::joined(info.stretches).size(), 1U);
  const std::string before = io::read_file(run / "run.json");
  resume_run(run, {});  // there is nothing to do, so nobody did anything
  EXPECT_EQ(io::read_file(run / "run.json"), before);
}

TEST(GivenKeys, AreThoseThatSomebodyGave) {
  const TemporaryFolder folder("given");
  const fs::path run = folder / "run";
  start_run(tiny_config({"optim.lr=2e-3"}), run, false, "", stop_after(1));
  const std::vector<std::string> set = info_of(run).set;
  const auto holds = [&](const std::string& key) { return std::find(set.begin(), set.end(), key) != set.end(); };
  EXPECT_TRUE(holds("optim.lr"));
  EXPECT_TRUE(holds("model.heads"));
  EXPECT_FALSE(holds("model.kv_heads"));
  EXPECT_FALSE(holds("train.micro_batch"));
  resume_run(run, {});
  EXPECT_EQ(info_of(run).set, set);
  EXPECT_EQ(read_config_file((run / "step12" / "config.yaml").string()).given, set);
}

TEST(GivenKeys, DerivedValuesOfARunsConfigFollowWhatIsOverridden) {
  const TemporaryFolder folder("derived");
  start_run(tiny_config(), folder / "free", false, "", stop_after(1));
  start_run(tiny_config({"model.kv_heads=1", "model.ffn_width=24", "train.micro_batch=2"}), folder / "set", false, "",
            stop_after(1));
  const auto asked = [&](const fs::path& file, const std::vector<std::string>& overrides) {
    config::Value value = load_given(file.string(), {});
    for (const auto& assignment : overrides) config::apply_override(value, assignment);
    return read_config(value);
  };
  for (const char* const file : {"free/config.yaml", "free/step1/config.yaml"}) {
    const RunConfig wider = asked(folder / file, {"model.heads=4", "model.width=32", "train.batch=6"});
    EXPECT_EQ(wider.model.kv_heads, 4) << file;
    EXPECT_EQ(wider.model.ffn_width, 128) << file;
    EXPECT_EQ(wider.train.micro_batch, 6) << file;
    EXPECT_EQ(config_text(asked(folder / file, {})), io::read_file(folder / file)) << file;
    EXPECT_FALSE(is_given(wider, "model.kv_heads"));
    EXPECT_TRUE(is_given(wider, "model.heads"));
  }
  const RunConfig kept = asked(folder / "set/config.yaml", {"model.heads=4", "model.width=32", "train.batch=6"});
  EXPECT_EQ(kept.model.kv_heads, 1);
  EXPECT_EQ(kept.model.ffn_width, 24);
  EXPECT_EQ(kept.train.micro_batch, 2);
  EXPECT_TRUE(is_given(kept, "model.kv_heads"));
  // A config.yaml of a version that did not say is taken as it stands.
  fs::create_directories(folder / "old");
  fs::copy_file(folder / "free/config.yaml", folder / "old/config.yaml");
  EXPECT_EQ(asked(folder / "old/config.yaml", {"model.heads=4"}).model.kv_heads, 2);
}

TEST(Paths, ARunGoesOnFromAnyFolder) {
  const TemporaryFolder folder("paths");
  const fs::path run = folder / "home" / "run";
  const auto config = [] { return tiny_config({"data.source=text", "data.train=texts/*.txt", "data.val=held.txt"}); };
  {
    const WorkingIn home(folder / "home");
    fs::create_directories("texts");
    std::ofstream("texts/a.txt") << std::string(3000, 'a');
    std::ofstream("held.txt") << std::string(300, 'b');
    start_run(config(), "whole", false, "", {});
    start_run(config(), "run", false, "", stop_after(5));
    EXPECT_EQ(info_of("run").folder, fs::current_path().string());
  }
  const std::string written = io::read_file(run / "config.yaml");
  EXPECT_NE(written.find("texts/*.txt"), std::string::npos);  // as written
  {
    const WorkingIn elsewhere(folder / "elsewhere");
    resume_run(run, {});
    const RunConfig stored = load_config(run);
    EXPECT_EQ(data::identity_of(stored.data).train.size(), 1U);
  }
  EXPECT_EQ(io::read_file(run / "config.yaml"), written);
  EXPECT_EQ(io::read_file(run / "step12" / "config.yaml"), written);
  EXPECT_EQ(info_of(run).folder, fs::weakly_canonical(folder / "home").string());
  EXPECT_EQ(timeless_lines(run / "metrics.jsonl"), timeless_lines(folder / "home" / "whole" / "metrics.jsonl"));
  // Both moved together: what is not where the run was started is looked for where the command is given.
  fs::rename(folder / "home", folder / "moved");
  {
    const WorkingIn moved(folder / "moved");
    EXPECT_EQ(data::identity_of(load_config("run").data).train.size(), 1U);
  }
  const WorkingIn elsewhere(folder / "elsewhere");
  const RunConfig lost = read_config_file((folder / "moved" / "run" / "config.yaml").string());
  const std::string said = message_of([&] { data::identity_of(lost.data); });
  EXPECT_NE(said.find("data.train: no file, folder or match for 'texts/*.txt', looked for in "), std::string::npos)
      << said;
  EXPECT_NE(said.find("home and "), std::string::npos) << said;
  EXPECT_NE(said.find("elsewhere"), std::string::npos) << said;
}

}  // namespace
}  // namespace siamese::train
