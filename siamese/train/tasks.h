// The downstream tasks that a run is evaluated on: eval.tasks.
#pragma once

#include <optional>

#include "siamese/eval/tasks.h"
#include "siamese/train/config.h"
#include "siamese/train/run_tokenizer.h"

namespace siamese::train {

// Nothing without eval.tasks. They are asked in the words of eval.tokenizer, else of the run's `own`. DataError or
// UsageError when there is neither, and when a set or the tokenizer cannot be read or is not the model's.
std::optional<eval::Tasks> open_tasks(const RunConfig& config, const RunTokenizer& own);

}  // namespace siamese::train
