#include "tests/cli/command.h"
#include <nlohmann/json.hpp>

namespace siamese::cli {
namespace {

using Verbs = CommandTest;

TEST_F(Verbs, HelpOnEachVerbHasAnExample) {
  for (const char* const verb :
       {"train",         "resume",        "eval",        "generate",      "sample",      "upcycle",
        "probe",         "convert",       "inspect",     "sweep",         "report",      "watch",
        "schemes",       "config list",   "config show", "config check",  "config keys", "serve",
        "bench machine", "bench kernels", "bench step",  "bench generate"}) {
    const CommandResult result = run(std::string(verb) + " --help");
    EXPECT_EQ(result.exit_code, 0) << verb;
    EXPECT_NE(result.out.find("Example: siamese "), std::string::npos) << verb;
  }
  EXPECT_NE(run("--help").out.find("Exit codes"), std::string::npos);
  const std::string version = run("--version").out;
  for (const char* const part : {"siamese 0.", "LibTorch 2.", " kernels, bfloat16 ", "threads"}) {
    EXPECT_NE(version.find(part), std::string::npos) << version;
  }
}

TEST_F(Verbs, ShowPrintsTheResolvedOverride) {
  const CommandResult result =
      run("config show arithmetic-small model.residual='siamese(x=post)' optim.lr=3e-3 model.vocab=32");
  EXPECT_EQ(result.exit_code, 0) << result.error;
  for (const char* const line : {"  residual: siamese\n", "  lr: 0.003\n", "  vocab: 32\n", "  kv_heads: 4\n"}) {
    EXPECT_NE(result.out.find(line), std::string::npos) << line << result.out;
  }
  write("again.yaml", result.out);
  EXPECT_EQ(run("config show again.yaml").out, result.out);
}

TEST_F(Verbs, CheckCountsParameters) {
  EXPECT_NE(run("config check siamese-1.3b").out.find("1.279B"), std::string::npos);
  EXPECT_NE(run("config list").out.find("siamese-400m-80L"), std::string::npos);
  EXPECT_NE(run("config keys").out.find("optim.schedule.warmup"), std::string::npos);
  EXPECT_NE(run("schemes siamese").out.find("depth_scale"), std::string::npos);
}

TEST_F(Verbs, TrainEvalGenerateReport) {
  const CommandResult trained = run(tiny + "--out run");
  ASSERT_EQ(trained.exit_code, 0) << trained.error;
  EXPECT_NE(trained.error.find("step 6/6"), std::string::npos) << trained.error;  // plain lines: stderr is a file here
  EXPECT_EQ(trained.error.find('\r'), std::string::npos);
  const CommandResult evaluated = run("eval run --json eval.problems=4");
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.error;
  const auto json = nlohmann::json::parse(evaluated.out);
  EXPECT_EQ(json["step"], 6);
  // The run's own last evaluation is the same question.
  const CommandResult same = run("eval run --json");
  std::string last = read("run/eval.jsonl");
  last.pop_back();
  EXPECT_EQ(nlohmann::json::parse(same.out), nlohmann::json::parse(last.substr(last.rfind('\n') + 1)));
  EXPECT_NE(run("eval run/step4").out.find("held-out loss"), std::string::npos);
  EXPECT_EQ(run("eval run model.width=32").exit_code, 2);
  EXPECT_EQ(run("eval run optim.lr=1").exit_code, 2);
  const CommandResult lines = run(tiny + "--json --out json");
  EXPECT_EQ(lines.exit_code, 0);
  EXPECT_TRUE(lines.error.empty()) << lines.error;
  std::istringstream stream(lines.out);
  int count = 0;
  for (std::string line; std::getline(stream, line); ++count) EXPECT_TRUE(nlohmann::json::parse(line).contains("step"));
  EXPECT_EQ(count, 8);  // six steps, two evaluations
  const CommandResult once = run("generate run --prompt 1+1= --max-tokens 5 --temperature 1 --seed 3");
  EXPECT_EQ(once.exit_code, 0) << once.error;
  EXPECT_EQ(run("generate run --prompt 1+1= --max-tokens 5 --temperature 1 --seed 3").out, once.out);
  EXPECT_EQ(run("report run").out, "run/report.html\n");
  EXPECT_NE(read("run/report.html").find("</html>"), std::string::npos);
  EXPECT_EQ(run("resume run").exit_code, 0);
  const CommandResult next = run(tiny + "init.from=run train.steps=1 --out next");
  EXPECT_EQ(next.exit_code, 0) << next.error;
}

TEST_F(Verbs, TokenModelsSpeakInNumbers) {
  std::string tokens;
  for (int i = 0; i < 4000; ++i) tokens += std::string(1, static_cast<char>(i % 7)) + '\0';
  write("train.bin", tokens);
  ASSERT_EQ(run(tiny + "data.source=tokens data.train=[train.bin] model.vocab=7 --out run").exit_code, 0);
  const CommandResult result = run("generate run --prompt '1 2 3' --max-tokens 4");
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), ' '), 3) << result.out;
  EXPECT_EQ(run("generate run --prompt 'one'").exit_code, 2);
  // Several at once: prompts in their order, of each as many samples as asked for, the first as it is alone.
  const CommandResult batch =
      run("generate run --prompt '1 2 3' --prompt 4 --samples 2 --max-tokens 4 --temperature 1 --seed 3");
  EXPECT_EQ(batch.exit_code, 0) << batch.error;
  const std::string alone = run("generate run --prompt '1 2 3' --max-tokens 4 --temperature 1 --seed 3").out;
  EXPECT_TRUE(batch.out.starts_with("[1] " + alone + "[2] ")) << batch.out << alone;
  EXPECT_EQ(std::count(batch.out.begin(), batch.out.end(), '\n'), 4) << batch.out;
}

TEST_F(Verbs, PastTheContextGenerationSlidesOrSaysWhyItEnds) {
  std::string tokens;
  for (int i = 0; i < 4000; ++i) tokens += std::string(1, static_cast<char>(i % 7)) + '\0';
  write("train.bin", tokens);
  const std::string train = tiny + "data.source=tokens data.train=[train.bin] model.vocab=7 model.context=8 ";
  ASSERT_EQ(run(train + "--out rope").exit_code, 0);
  const CommandResult slid = run("generate rope --prompt '1 2 3' --max-tokens 20");
  EXPECT_EQ(std::count(slid.out.begin(), slid.out.end(), ' '), 19) << slid.out << slid.error;
  EXPECT_TRUE(slid.error.empty()) << slid.error;
  ASSERT_EQ(run(train + "model.positions=learned --out learned").exit_code, 0);
  const CommandResult ended = run("generate learned --prompt '1 2 3' --max-tokens 20");
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_EQ(std::count(ended.out.begin(), ended.out.end(), ' '), 5) << ended.out;
  EXPECT_NE(ended.error.find("context of 8 tokens"), std::string::npos) << ended.error;
}

TEST_F(Verbs, SweepSkipsWhatIsFinishedAndContinues) {
  write("sweep.yaml",
        "sweep: s\nconfig: arithmetic-small\n"
        "set: {model.width: 16, model.blocks: 1, model.heads: 2, model.context: 24, train.batch: 2, train.steps: 3, "
        "eval.batches: 1, eval.problems: 1, data.digits: 1, engine.threads: 1, train.max_skips: 2}\n"
        "variants: [{model.residual: pre}, {model.residual: pre, init.std: 1e30, label: broken}]\n"
        "grid: {train.seed: [1, 2]}\n");
  const CommandResult first = run("sweep sweep.yaml");
  ASSERT_EQ(first.exit_code, 0) << first.error;
  EXPECT_NE(first.out.find("| pre"), std::string::npos) << first.out;
  EXPECT_EQ(nlohmann::json::parse(read("runs/s/broken-seed1/run.json"))["status"], "diverged");
  const std::string metrics = read("runs/s/pre-seed1/metrics.jsonl");
  std::filesystem::remove_all(folder / "runs/s/pre-seed2");
  ASSERT_EQ(run("sweep sweep.yaml").exit_code, 0);
  EXPECT_EQ(read("runs/s/pre-seed1/metrics.jsonl"), metrics);
  EXPECT_TRUE(exists("runs/s/pre-seed2/step3"));
  EXPECT_TRUE(exists("runs/s/report.html"));
  // Another config under the same name is not silently taken for the same run.
  expect_refusal("sweep sweep.yaml --quiet train.steps=4", 2, "another config");
}

}  // namespace
}  // namespace siamese::cli
