// eval.jsonl -> the evaluations of a run (docs/run-directory.md).
#pragma once

#include <cstddef>
#include <filesystem>

#include "siamese/report/run_record.h"

namespace siamese::report {

inline constexpr size_t kClassLimit = 200;                 // a larger confusion matrix is not shown
inline constexpr size_t kPromptLimit = 32;                 // nor are further prompts of an evaluation
inline constexpr size_t kPromptBytes = size_t{256} << 10;  // and none past so much text of a run, the newest first

// Without the confusion matrix.
EvalRow row_of(const runs::EvalRecord& record);

void read_evals(const std::filesystem::path& path, RunRecord& run);

}  // namespace siamese::report
