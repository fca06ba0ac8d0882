// recorded.jsonl: runs of a sweep that ended elsewhere, one line each (docs/run-directory.md), and have no folder here.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "siamese/report/run_record.h"

namespace siamese::report {

// By the name of the run's folder; none when the file is missing. DataError naming the file and the line when a line
// cannot be understood: a result is not dropped in silence.
std::map<std::string, RunRecord> read_recorded(const std::filesystem::path& file);

}  // namespace siamese::report
