// sweep.json: which runs belong to a sweep (docs/run-directory.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "siamese/runs/numbers.h"

namespace siamese::runs {

struct SweepEntry {
  std::string dir;      // folder below the sweep's
  std::string variant;  // label; "": the run's own
  double lr = kNone;
  std::optional<uint64_t> seed;  // nullopt: not written
};

struct SweepFile {
  std::string name;  // "" when the file has none
  std::vector<SweepEntry> runs;
};

std::string to_json(const SweepFile& sweep);  // the text of the file
SweepFile read_sweep_file(std::string_view text, const std::string& where);
// Whether a file is a sweep.json of ours: SystemError when it cannot be read.
bool is_sweep_file(const std::filesystem::path& path);

}  // namespace siamese::runs
