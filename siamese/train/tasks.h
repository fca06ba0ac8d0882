// The downstream tasks that a run is evaluated on: eval.tasks.
#pragma once

#include <optional>

#include "siamese/eval/tasks.h"
#include "siamese/train/config.h"

namespace siamese::train {

// Nothing without eval.tasks. DataError or UsageError when a set or the tokenizer cannot be read or is not the model's.
std::optional<eval::Tasks> open_tasks(const RunConfig& config);

}  // namespace siamese::train
