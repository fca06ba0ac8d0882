// A disk that is full, a limit of hours, files edited by hand: what a run does about them.
#include "tests/cli/background.h"
#include "tests/cli/command.h"
#include <nlohmann/json.hpp>

#include "siamese/io/safetensors.h"

namespace siamese::cli {
namespace {

class Survival : public CommandTest {
 protected:
  nlohmann::json run_file(const std::string& out) const { return nlohmann::json::parse(read(out + "/run.json")); }

  // The binary while no file may grow past `kilobytes`.
  CommandResult run_in(int kilobytes, const std::string& arguments) const {
    Background process(folder, arguments, "ulimit -f " + std::to_string(kilobytes * 2));  // in blocks of 512 bytes
    const int code = process.wait();
    return {code, read("out.txt"), read("error.txt")};
  }

  void replace(const std::string& file, const std::string& from, const std::string& to) const {
    std::string text = read(file);
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from << " in " << file;
    write(file, text.replace(at, from.size(), to));
  }

  bool has_temporaries(const std::string& out) const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / out)) {
      if (entry.path().string().find(".tmp-") != std::string::npos) return true;
    }
    return false;
  }
};

// In the background too, where it is said in the same words.
class SurvivalOfSaves : public Survival, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Background, SurvivalOfSaves, ::testing::Values("false", "true"));

// 30 kB hold a line of metrics, 34 kB of weights not: the checkpoints fail, the run is recorded to its end.
TEST_P(SurvivalOfSaves, ACheckpointThatCannotBeWrittenCostsOnlyItself) {
  ASSERT_EQ(run(tiny + "--out whole").exit_code, 0);
  ASSERT_EQ(run(tiny + "train.max_hours=1e-9 train.save_in_background=" + GetParam() + " --out run").exit_code, 75);
  const std::string first = read("run/step1/model.safetensors");
  replace("run/config.yaml", "max_hours: 1e-09", "max_hours: 0");
  const CommandResult full = run_in(30, "resume run --quiet");
  EXPECT_EQ(full.exit_code, 1) << full.error;
  EXPECT_EQ(std::count(full.error.begin(), full.error.end(), '\n'), 4) << full.error;
  EXPECT_NE(full.error.find("train.max_hours: was 1e-09, is 0\n"), std::string::npos) << full.error;
  EXPECT_NE(full.error.find("siamese: step 2: not saved: cannot write"), std::string::npos) << full.error;
  EXPECT_NE(full.error.find("siamese: step 4: not saved"), std::string::npos) << full.error;
  EXPECT_NE(full.error.find("training goes on; the last good checkpoint is step1\n"), std::string::npos) << full.error;
  EXPECT_NE(full.error.find("File too large; the last good checkpoint is step1; go on with: siamese resume run\n"),
            std::string::npos)
      << full.error;
  EXPECT_EQ(run_file("run")["status"], "stopped");
  EXPECT_EQ(read("run/latest"), "step1\n");
  EXPECT_TRUE(read("run/step1/model.safetensors") == first);
  EXPECT_FALSE(exists("run/step6"));
  EXPECT_FALSE(has_temporaries("run"));
  ASSERT_EQ(run("resume run --quiet").exit_code, 0);
  EXPECT_TRUE(read("run/step6/model.safetensors") == read("whole/step6/model.safetensors"));
  EXPECT_TRUE(has_lines(folder / "run/metrics.jsonl", 6));
}

// A full file of metrics ends the run, saved at the very step; the line that had no room is written by the resume.
TEST_F(Survival, MetricsThatCannotBeWrittenEndTheRunSaved) {
  const std::string longer = tiny + "train.steps=400 train.checkpoint_every=0 train.eval_every=0 train.record_every=1 ";
  ASSERT_EQ(run(longer + "--quiet --out whole").exit_code, 0);
  const CommandResult full = run_in(200, longer + "--quiet --out run");
  EXPECT_EQ(full.exit_code, 1) << full.error;
  EXPECT_EQ(std::count(full.error.begin(), full.error.end(), '\n'), 1) << full.error;
  const auto step = run_file("run")["step"].get<int64_t>();
  EXPECT_GT(step, 50);
  EXPECT_LT(step, 400);
  const std::string name = "step" + std::to_string(step);
  EXPECT_NE(full.error.find("siamese: cannot write 'run/metrics.jsonl': File too large; the last good checkpoint is " +
                            name + "; go on with: siamese resume run\n"),
            std::string::npos)
      << full.error;
  EXPECT_EQ(run_file("run")["status"], "stopped");
  EXPECT_EQ(read("run/latest"), name + "\n");
  EXPECT_FALSE(has_lines(folder / "run/metrics.jsonl", step));
  ASSERT_EQ(run("resume run --quiet").exit_code, 0);
  EXPECT_TRUE(read("run/step400/optim.safetensors") == read("whole/step400/optim.safetensors"));
  EXPECT_EQ(read("run/step400/trainer.json"), read("whole/step400/trainer.json"));
  EXPECT_EQ(read("run/" + name + "/trainer.json").find("unrecorded"), std::string::npos);  // it was saved again
  std::istringstream lines(read("run/metrics.jsonl"));
  int64_t expected = 0;
  for (std::string line; std::getline(lines, line);) EXPECT_EQ(nlohmann::json::parse(line)["step"], ++expected);
  EXPECT_EQ(expected, 400);
}

TEST_F(Survival, ALimitOfHoursStopsEachProcess) {
  ASSERT_EQ(run(tiny + "--out whole").exit_code, 0);
  const CommandResult first = run(tiny + "train.max_hours=1e-9 --out run");
  EXPECT_EQ(first.exit_code, 75);
  EXPECT_NE(first.error.find("train.max_hours is over: stopped and saved; go on with: siamese resume run\n"),
            std::string::npos)
      << first.error;
  EXPECT_EQ(run_file("run")["status"], "stopped");
  EXPECT_EQ(read("run/latest"), "step1\n");
  EXPECT_EQ(run("resume run").exit_code, 75);
  EXPECT_EQ(read("run/latest"), "step2\n");
  replace("run/config.yaml", "max_hours: 1e-09", "max_hours: 10");
  EXPECT_EQ(run("resume run").exit_code, 0);
  EXPECT_TRUE(read("run/step6/model.safetensors") == read("whole/step6/model.safetensors"));
}

TEST_F(Survival, EditedConfigs) {
  ASSERT_EQ(run(tiny + "train.max_hours=1e-9 --out run").exit_code, 75);
  const std::string config = read("run/config.yaml");
  replace("run/config.yaml", "beta2: 0.95", "beta2: 0.99");
  replace("run/config.yaml", "digits: 1", "digits: 2");
  expect_refusal("resume run", 3,
                 "run/config.yaml: was changed since step1 was saved: data.digits: 2, and the checkpoint says 1; "
                 "optim.beta2: 0.99, and the checkpoint says 0.95: put it back to go on with the run, or make the same "
                 "change in run/step1/config.yaml if it is meant");
  write("run/config.yaml", config);
  replace("run/config.yaml", "  steps: 6", "  steps: 8");
  replace("run/config.yaml", "max_hours: 1e-09", "max_hours: 0");
  const CommandResult longer = run("resume run --quiet");
  EXPECT_EQ(longer.exit_code, 0) << longer.error;
  EXPECT_NE(longer.error.find("siamese: run/config.yaml: edited since step1 was saved: train.steps: was 6, is 8; "
                              "train.max_hours: was 1e-09, is 0; the cosine schedule follows the new end"),
            std::string::npos)
      << longer.error;
  EXPECT_TRUE(exists("run/step8"));
  for (const char* const nothing : {"", "# only a comment\n"}) {
    write("run/config.yaml", nothing);
    expect_refusal("resume run", 3, "run/config.yaml: is empty");
    write("run/step8/config.yaml", nothing);
    expect_refusal("eval run", 3, "run/step8/config.yaml: is empty");
  }
}

TEST_F(Survival, WeightsOfAnotherFormatOrNotFinite) {
  ASSERT_EQ(run(tiny + "--out run").exit_code, 0);
  const auto weights = io::SafetensorsFile::open(folder / "run/step6/model.safetensors");
  auto metadata = weights.metadata();
  metadata["format_version"] = "9";
  io::write_safetensors(folder / "run/step6/model.safetensors", weights.tensors(), metadata);
  const std::string complaint = "model.safetensors: format_version: expected 1, got '9'";
  expect_refusal("eval run", 3, complaint);
  expect_refusal(tiny + "init.from=run --out x", 3, complaint);
  replace("run/config.yaml", "  steps: 6", "  steps: 8");
  const CommandResult resumed = run("resume run --quiet");
  EXPECT_EQ(resumed.exit_code, 3);
  EXPECT_NE(resumed.error.find(complaint), std::string::npos) << resumed.error;
  auto tensors = weights.tensors();
  std::string broken(reinterpret_cast<const char*>(tensors.back().data), tensors.back().bytes);
  broken.replace(broken.size() - 4, 4, std::string("\x00\x00\xC0\x7F", 4));
  tensors.back().data = reinterpret_cast<const std::byte*>(broken.data());
  tensors.back().checksum.reset();
  io::write_safetensors(folder / "run/step6/model.safetensors", tensors, weights.metadata());
  expect_refusal("eval run", 3, " is not finite, so that the loss is not");
}

// By every verb that reads it; what reads names and shapes only shows them.
TEST_F(Survival, AFlippedBitIsNamed) {
  ASSERT_EQ(run(tiny + "train.ema=0.5 model.residual=pre --out run").exit_code, 0);
  const auto flip = [&](const std::string& name, size_t from_end) {
    std::string bytes = read(name);
    bytes[bytes.size() - from_end] = static_cast<char>(bytes[bytes.size() - from_end] ^ 0x10);
    write(name, bytes);
  };
  const std::string model = read("run/step6/model.safetensors");
  flip("run/step6/model.safetensors", 1000);
  replace("run/config.yaml", "  steps: 6", "  steps: 8");
  const std::string named = "run/step6/model.safetensors: tensor '";
  for (const char* const verb :
       {"eval run", "generate run --prompt 1+1=", "upcycle run --to siamese --out up", "inspect run",
        "inspect run --json", "convert run --from siamese --to hf-llama --out c.safetensors"}) {
    const CommandResult result = run(verb);
    EXPECT_EQ(result.exit_code, 3) << verb << "\n" << result.error;
    EXPECT_NE(result.error.find(named), std::string::npos) << verb << "\n" << result.error;
    EXPECT_NE(result.error.find(": expected the checksum "), std::string::npos) << verb << "\n" << result.error;
  }
  EXPECT_NE(run("resume run --quiet").error.find(named), std::string::npos);
  EXPECT_NE(run(tiny + "model.residual=pre init.from=run --out x").error.find(named), std::string::npos);
  EXPECT_FALSE(exists("up") || exists("c.safetensors") || exists("x"));
  EXPECT_EQ(run("inspect run --no-statistics").exit_code, 0);
  write("run/step6/model.safetensors", model);
  flip("run/step6/ema.safetensors", 1);
  EXPECT_NE(run("resume run --quiet").error.find("run/step6/ema.safetensors: tensor '"), std::string::npos);
  flip("run/step6/ema.safetensors", 1);
  flip("run/step6/optim.safetensors", 1);
  EXPECT_NE(run("resume run --quiet").error.find("run/step6/optim.safetensors: tensor 'v."), std::string::npos);
  flip("run/step6/optim.safetensors", 1);
  EXPECT_EQ(run("resume run --quiet").exit_code, 0);
}

// A config of a checkpoint is what its weights were saved under.
TEST_F(Survival, AnEditedModelIsNamedByKey) {
  ASSERT_EQ(run(tiny + "model.residual=pre --out run").exit_code, 0);
  replace("run/step6/config.yaml", "rope_theta: 10000", "rope_theta: 20000");
  const std::string complaint =
      "run/step6/config.yaml: model.rope_theta: 20000, and the weights were saved under 10000";
  expect_refusal("eval run", 3, complaint);
  expect_refusal("generate run --prompt 1+1=", 3, complaint);
  expect_refusal("upcycle run --to siamese --out up", 3, complaint);
  expect_refusal("convert run --from siamese --to hf-llama --out c", 3, complaint);
  replace("run/config.yaml", "rope_theta: 10000", "rope_theta: 20000");  // meant: in both, and yet another function
  replace("run/config.yaml", "  steps: 6", "  steps: 8");
  EXPECT_NE(run("resume run --quiet").error.find(complaint), std::string::npos);
}

TEST_F(Survival, ChangedDataAreNamed) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += std::to_string(i * i) + "\n";
  write("a.txt", text);
  ASSERT_EQ(run(tiny + "data.source=text data.train=[a.txt] --out run").exit_code, 0);
  text[100] = text[100] == '1' ? '2' : '1';
  EXPECT_EQ(run("eval run").error.find("trained on"), std::string::npos);
  write("a.txt", text);
  const CommandResult said = run("eval run");
  EXPECT_EQ(said.exit_code, 0) << said.error;
  EXPECT_NE(said.error.find("siamese: a.txt: expected "), std::string::npos) << said.error;
  EXPECT_NE(said.error.find("not what the run was trained on"), std::string::npos) << said.error;
  EXPECT_EQ(run("eval run data.val=[a.txt]").error.find("trained on"), std::string::npos);
  const CommandResult refused = run("resume run/step4 --quiet");
  EXPECT_EQ(refused.exit_code, 3) << refused.error;
  EXPECT_NE(refused.error.find("siamese: a.txt: expected "), std::string::npos) << refused.error;
  EXPECT_NE(refused.error.find("--accept-changed-data"), std::string::npos) << refused.error;
  const CommandResult accepted = run("resume run/step4 --quiet --accept-changed-data");
  EXPECT_EQ(accepted.exit_code, 0) << accepted.error;
  EXPECT_NE(accepted.error.find("a.txt: expected "), std::string::npos) << accepted.error;
  EXPECT_NE(read("run/step6/trainer.json").find("\"step 4: a.txt: expected "), std::string::npos);
}

// A token written while a run has its file open: saved, named, exit 3; no write past the end of anything.
TEST_F(Survival, ATokenPastTheVocabularyInTheMiddleOfAFile) {
  std::string tokens(200'000, '\0');
  write("good.bin", tokens);
  for (size_t i = 60'000; i < 64'000; ++i) tokens[i] = '\x7F';  // where opening does not look, nor the first steps
  write("a.bin", tokens);
  const std::string command = tiny + "data.source=tokens model.vocab=300 train.steps=60 ";
  const CommandResult result = run(command + "data.train=[a.bin] --out run");
  EXPECT_EQ(result.exit_code, 3) << result.error;
  EXPECT_NE(result.error.find("a.bin: token 32639 at byte "), std::string::npos) << result.error;
  const auto step = run_file("run")["step"].get<int64_t>();
  EXPECT_GT(step, 0);
  EXPECT_LT(step, 60);
  EXPECT_EQ(run_file("run")["status"], "stopped");
  EXPECT_NE(run_file("run")["message"].get<std::string>().find("a.bin: token 32639"), std::string::npos);
  EXPECT_EQ(read("run/latest"), "step" + std::to_string(step) + "\n");
  EXPECT_TRUE(has_lines(folder / "run/metrics.jsonl", step));
  // Mended, it goes on to the end of a run that never met one: all that was read so far is the same.
  write("a.bin", read("good.bin"));
  ASSERT_EQ(run("resume run --accept-changed-data --quiet").exit_code, 0);
  ASSERT_EQ(run(command + "data.train=[good.bin] --quiet --out whole").exit_code, 0);
  EXPECT_TRUE(read("run/step60/model.safetensors") == read("whole/step60/model.safetensors"));
}

}  // namespace
}  // namespace siamese::cli
