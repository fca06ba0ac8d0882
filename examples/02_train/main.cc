// Lesson 2: a training run from C++, the way `siamese train` does it.
//
// A recipe (configs/arithmetic-small.yaml, installed with the engine) and overrides give one resolved config; start_run
// trains it in its own directory, where config.yaml, metrics.jsonl, eval.jsonl and checkpoints are left; an Observer is
// told what happens. Any key may be set on the command line: ./train model.residual=pre optim.lr=1e-3
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <unistd.h>

#include "siamese/base/check.h"
#include "siamese/config/load.h"
#include "siamese/train/run.h"

namespace fs = std::filesystem;
namespace train = siamese::train;

// Prints what a run tells.
class Narrator : public train::Observer {
 public:
  void started(const std::string& what) override { std::printf("%s\n", what.c_str()); }
  void stepped(const train::StepMetrics& metrics, int64_t steps) override {
    if (metrics.step != 1 && metrics.step % 20 != 0) return;
    std::printf("step %3ld of %ld  loss %.4f  gradient norm %.3f  %.0f tokens/s\n", long(metrics.step), long(steps),
                metrics.loss, metrics.grad_norm, metrics.tokens_per_s);
  }
  void evaluated(const siamese::eval::Evaluation& evaluation) override {
    std::printf("held-out loss %.4f (perplexity %.2f), %ld of %ld answers right\n", evaluation.held_out.loss,
                evaluation.held_out.perplexity, long(evaluation.correct()), long(evaluation.problems()));
  }
  void saved(const fs::path& checkpoint) override { std::printf("saved %s\n", checkpoint.filename().c_str()); }
};

int main(int argc, char** argv) {
  const fs::path run_dir = fs::temp_directory_path() / ("siamese_example_train_" + std::to_string(getpid()));
  try {
    // A model small enough for a few seconds; what the command line says comes last and wins.
    std::vector<std::string> overrides = {"model.width=32",        "model.blocks=2",          "model.context=64",
                                          "data.digits=2",         "optim.lr=5e-3",           "train.steps=80",
                                          "train.eval_every=0",    "eval.problems=10",        "train.batch=16",
                                          "train.record_every=10", "optim.schedule.warmup=10"};
    overrides.insert(overrides.end(), argv + 1, argv + argc);
    const auto config = train::read_config(siamese::config::load("arithmetic-small", overrides, {RECIPES}));

    Narrator narrator;
    train::start_run(config, run_dir, /*overwrite=*/false, /*label=*/"", {.observer = &narrator, .stop_signal = {}});
    for (const auto& entry : fs::directory_iterator(run_dir)) std::printf("left %s\n", entry.path().filename().c_str());
  } catch (const siamese::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  }
  fs::remove_all(run_dir);  // a lesson; a real run keeps it
  return 0;
}
