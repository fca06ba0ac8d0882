// Folders -> records. A run folder never fails to be read (see run_record.h); a sweep needs a valid sweep.json:
//   {"schema":1, "name":"demo", "runs":[{"dir":"pre-lr0.002-seed1", "variant":"pre", "lr":0.002, "seed":1}, ...]}
// A run of a sweep without a folder of its own may have a line in recorded.jsonl beside it (recorded.h).
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "siamese/report/run_record.h"

namespace siamese::report {

// Stands for the family of a run that has not started, in a sweep of several families.
inline constexpr const char* kFamilyNotKnown = "not started";

struct Collection {
  bool is_sweep = false;
  std::string name;
  std::vector<RunRecord> runs;  // exactly one for a run folder
  size_t grids_left_out = 0;    // sample grids that would have made the page too large (sample_grids.h)
  bool is_comparison = false;   // of several sources (sources.h), drawn like a sweep
};

RunRecord read_run(const std::filesystem::path& folder);

// Parts of it: run.json into state, names and numbers; config.yaml into config and family. What cannot be read is a
// note.
void read_info(const std::filesystem::path& folder, RunRecord& run);
void read_config(const std::filesystem::path& path, RunRecord& run);

// DataError when the folder is neither, or its sweep.json cannot be understood.
Collection read_collection(const std::filesystem::path& run_or_sweep);

}  // namespace siamese::report
