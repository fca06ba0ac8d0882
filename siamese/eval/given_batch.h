// A batch of held-out samples as a model is looked into: what its loss is computed from, and the same as tensors on
// which nothing is drawn any more (Model::state), with the answers that belong to them.
#pragma once

#include "siamese/data/batches.h"
#include "siamese/models/model.h"

namespace siamese::eval {

struct GivenBatch {
  GivenBatch(const models::Model& model, const data::Batch& batch);

  bool is_text() const { return inputs.tokens.defined(); }

  models::Inputs inputs;  // as Model::losses takes them
  double weight = 0;      // what a mean loss divides by
  models::Inputs given;   // as Model::state takes them; dit: with the timestep and noise that belong to the position
  at::Tensor answers;     // text: the next tokens, int64 [rows, n]; vit: labels; dit: the noise
  at::Tensor counted;     // text: int64, the tokens of rows x n whose answer counts, in order
};

// At most `most` of the numbers of a list, evenly spread over it.
at::Tensor thinned(const at::Tensor& indices, int64_t most);

}  // namespace siamese::eval
