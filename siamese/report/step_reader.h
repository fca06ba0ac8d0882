// metrics.jsonl -> the columns of a run and the profiles of its recorded steps (docs/run-directory.md).
#pragma once

#include <filesystem>

#include "siamese/report/run_record.h"

namespace siamese::report {

void read_metrics(const std::filesystem::path& path, RunRecord& run);

}  // namespace siamese::report
