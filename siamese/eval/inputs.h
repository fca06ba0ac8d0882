// From a batch of the data room to the tensors a model takes.
#pragma once

#include "siamese/data/batches.h"
#include "siamese/models/model.h"

namespace siamese::eval {

// Copies rows [first, first + rows) of the batch.
models::Inputs to_inputs(const data::Batch& batch, int64_t first, int64_t rows);
models::Inputs to_inputs(const data::Batch& batch);

// What a mean loss divides by: the summed weights of the targets, or the number of images.
double total_weight(const data::Batch& batch);

}  // namespace siamese::eval
