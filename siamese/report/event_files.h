// Runs as TensorBoard reads them: FOLDER/<run>/events.out.tfevents.* for each, from its metrics.jsonl and eval.jsonl
// (runs/event_file.h).
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

namespace siamese::report {

// Of all runs of these sources (sources.h; a checkpoint stands for its whole run), each in a folder of its name; where
// two have the same name, the name of the folder they lie in stands before it. Returns how many there are. DataError
// when no source has a step.
size_t write_event_files(const std::vector<std::filesystem::path>& sources, const std::filesystem::path& folder);

}  // namespace siamese::report
