// eval.jsonl -> the evaluations of a run (docs/run-directory.md).
#pragma once

#include <cstddef>
#include <filesystem>

#include "siamese/report/run_record.h"

namespace siamese::report {

inline constexpr size_t kClassLimit = 200;  // a larger confusion matrix is not shown

// Without the confusion matrix.
EvalRow row_of(const runs::EvalRecord& record);

void read_evals(const std::filesystem::path& path, RunRecord& run);

}  // namespace siamese::report
