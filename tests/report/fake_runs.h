// Run and sweep folders as a trainer would leave them, made from formulas: for the tests, and for looking at the page.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace siamese::report {

struct FakeRun {
  std::string variant = "pre";
  std::string scheme = "pre";
  double lr = 0.002;
  int64_t seed = 1;
  int64_t steps = 200;
  int64_t last_step = 200;  // below `steps`: running, stopped or diverged
  std::string status = "finished";
  std::string message = "";
  int64_t blocks = 2;
  std::vector<std::string> streams = {"h"};
  int64_t sites_every = 50;
  int64_t eval_every = 50;  // 0: never evaluated
  bool accuracy = true;
  double floor = 0.5;    // where the loss curve ends
  int64_t spike_at = 0;  // a step with a loss of 40
};

// The folder is made; its files are config.yaml, metrics.jsonl, eval.jsonl, run.json.
void write_fake_run(const std::filesystem::path& folder, const FakeRun& run);

// sweep.json beside the folders of these runs, named <variant>-lr<lr>-seed<seed>.
void write_fake_sweep(const std::filesystem::path& folder, const std::string& name, const std::vector<FakeRun>& runs);

std::string fake_run_name(const FakeRun& run);

void write_text(const std::filesystem::path& path, const std::string& text);

}  // namespace siamese::report
