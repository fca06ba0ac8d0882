// Run and sweep folders as a trainer would leave them, made from formulas: for the tests, and for looking at the page.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

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
  std::string family = "lm";
  double baseline = 0;  // 0: none is recorded
};

// The folder is made; its files are config.yaml, metrics.jsonl, eval.jsonl, run.json.
void write_fake_run(const std::filesystem::path& folder, const FakeRun& run);

// sweep.json beside the folders of these runs, named <variant>-lr<lr>-seed<seed>.
void write_fake_sweep(const std::filesystem::path& folder, const std::string& name, const std::vector<FakeRun>& runs);

std::string fake_run_name(const FakeRun& run);

// What a family adds to a line: moe, vit and dit; nothing for lm. As numbers that a test can work out:
//   vit  samples_per_s 100 seed; top1 (400 + seed) / 512, top5 500 / 512, two classes
//   dit  samples_per_s 100 seed; mse step / 1000, vlb step / 10000, feature_distance 10 + seed, class_agreement 0.5
//   moe  balance_loss 2, router_z_loss 3, expert_max_load 1 + seed, experts of two blocks
void add_family_step(const FakeRun& run, int64_t step, nlohmann::json& line);
void add_family_eval(const FakeRun& run, int64_t step, nlohmann::json& line);

void write_text(const std::filesystem::path& path, const std::string& text);

}  // namespace siamese::report
