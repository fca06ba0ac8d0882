// run.json: what a run is, what became of it, and who made it (docs/run-directory.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "siamese/base/enum_text.h"
#include "siamese/runs/data_key.h"
#include "siamese/runs/notes.h"
#include "siamese/runs/numbers.h"
#include "siamese/runs/provenance.h"

namespace siamese::runs {

enum class RunStatus { running, finished, diverged, stopped };

struct RunInfo {
  std::string id;  // 16 digits, kept for life; "" in version 0.1.0
  RunStatus status = RunStatus::running;
  std::string scheme;
  std::string label;  // the sweep's name for it; else the scheme
  int64_t step = 0;
  std::optional<int64_t> saved;  // step of the newest checkpoint, 0: none; 0.1.0 did not say
  int64_t steps = 0;             // train.steps
  int64_t parameters = 0;
  std::optional<uint64_t> seed;
  double lr = kNone;
  double step_flops = kNone;  // of one step, forward and backward
  std::string message;        // why it diverged or stopped on an error
  std::vector<std::string>
      set;                // the keys that somebody gave; of the others the config has defaults and derived values
  bool says_set = false;  // older versions did not
  std::string folder;     // where the config's relative paths start; "": not known
  DataKey data;
  std::vector<Stretch> stretches;  // in order; none in schema 1
};

std::string to_json(const RunInfo& info);  // the text of the file
// Without notes also a DataError for anything that is no run.json of ours.
RunInfo read_run_info(std::string_view text, const std::string& where, Notes* notes = nullptr);

// Whether RUN/run.json is one of ours: what it says of itself, not whether every field of it can be read. DataError
// when the file itself cannot be read.
bool is_run_file(const std::filesystem::path& run_dir);
// RUN/run.json; nullopt when there is none.
std::optional<RunInfo> read_run_file(const std::filesystem::path& run_dir, Notes* notes = nullptr);
void write_run_file(const std::filesystem::path& run_dir, const RunInfo& info);

}  // namespace siamese::runs

template <>
struct siamese::EnumText<siamese::runs::RunStatus> {
  static constexpr EnumNames<runs::RunStatus, 4> names{{{runs::RunStatus::running, "running"},
                                                        {runs::RunStatus::finished, "finished"},
                                                        {runs::RunStatus::diverged, "diverged"},
                                                        {runs::RunStatus::stopped, "stopped"}}};
};
