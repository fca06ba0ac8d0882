// metrics.jsonl -> the columns of a run and the profiles of its recorded steps (docs/run-directory.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "siamese/report/run_record.h"

namespace siamese::report {

inline constexpr int64_t kSnapshotLimit = 60;      // recorded profiles kept per run, evenly spread
inline constexpr size_t kStreamLimit = 64;         // names of streams in a run; a scheme has at most 16
inline constexpr size_t kExpertLimit = 128 * 128;  // loads of one step, blocks x experts: past it a page gets too large

void read_metrics(const std::filesystem::path& path, RunRecord& run);

}  // namespace siamese::report
