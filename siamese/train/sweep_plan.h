// A sweep: every variant x every point of a grid, as a list of resolved runs.
//   sweep: demo                     name
//   config: arithmetic-small        a recipe or file all runs start from
//   set: {train.steps: 500}         overrides for all runs
//   variants:                       one set of overrides each; `label` is optional
//     - {model.residual: pre}
//     - {model.residual: pre, model.attention_norm: qkv}
//     - {config: text-small}        a recipe of its own, instead of the one above
//   grid: {optim.lr: [1e-3, 2e-3], train.seed: [1, 2, 3]}
//   record: ../results/demo.jsonl   where runs that ended are noted (sweep_record.h); from the folder of this file
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "siamese/train/config.h"

namespace siamese::train {

struct PlannedRun {
  std::string dir;      // folder below the sweep's
  std::string variant;  // label
  RunConfig config;
};

struct SweepPlan {
  std::string name;
  std::filesystem::path record;  // empty: none
  std::vector<PlannedRun> runs;
};

// `overrides` ("train.steps=100") win over the file, for every run. `only`: the folder of the one run that is wanted;
// the others are then not worked out.
SweepPlan plan_sweep(const std::filesystem::path& path, const std::vector<std::string>& overrides,
                     const std::vector<std::filesystem::path>& config_folders, const std::string& only = "");
// The same of a text that stands in no file: `path` names it in errors, and its folder is where recipes and the record
// are looked for.
SweepPlan plan_sweep_text(const std::string& text, const std::filesystem::path& path,
                          const std::vector<std::string>& overrides,
                          const std::vector<std::filesystem::path>& config_folders, const std::string& only = "");

// Tells a planned run from one whose sweep file or recipe was edited meanwhile: 16 hexadecimal digits.
std::string plan_checksum(const PlannedRun& run);

// sweep.json (runs/sweep_file.h): what the report reads.
std::string to_json(const SweepPlan& plan);

}  // namespace siamese::train
