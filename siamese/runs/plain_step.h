// Most lines of metrics.jsonl are plain: numbers, true or false and short words under a few keys, nothing nested. They
// are read here in one pass, about eight times as fast as through a tree of JSON; a page about 200 runs reads a
// million. What is not plain, or anything but right, is left to the reader that can say what is wrong.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "siamese/runs/notes.h"
#include "siamese/runs/step_record.h"

namespace siamese::runs {

// What read_any_step would return, or nothing when it has to be asked.
std::optional<StepRecord> read_plain_step(std::string_view line);

// Any line (step_record.cc); read_step tries the plain one first.
StepRecord read_any_step(std::string_view line, const std::string& where, Notes* notes);

}  // namespace siamese::runs
