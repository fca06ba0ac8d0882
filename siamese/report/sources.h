// Runs, checkpoints and sweeps that have nothing to do with each other, as one collection for one page.
//   a run         its curves
//   a checkpoint  the curves of its run up to its step; its config alone when it was taken out of its run
//   a sweep       all its runs
#pragma once

#include <filesystem>
#include <vector>

#include "siamese/report/reader.h"

namespace siamese::report {

// One source that is a run or a sweep is read_collection's. DataError when a source is none of the three.
Collection read_sources(const std::vector<std::filesystem::path>& sources);

// Runs of one variant and learning rate count as seeds of one setting. Those that differ in more than the seed get a
// name that says in what: "pre, width=64"; or where they lie, when that would be long or says nothing.
void tell_apart(std::vector<RunRecord>& runs);

}  // namespace siamese::report
