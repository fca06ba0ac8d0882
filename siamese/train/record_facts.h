// What lines of a record lack that were written before these were recorded, and what needs no training to be known.
#pragma once

#include "siamese/runs/record_line.h"
#include "siamese/train/config.h"

namespace siamese::train {

// Fills in the baseline of the last evaluation and the FLOPs of a step, where the line has none. Where the data are not
// here there is no baseline.
void fill_in_facts(const RunConfig& config, runs::RecordLine& line);

// Of one step of a run, forward and backward.
double step_flops(const models::Model& model, const RunConfig& config);

}  // namespace siamese::train
