// The row of all gradients (nn::GradientBuffer) in segments, one after the other: the parameters of one block of the
// model, or what belongs to none (embedding, head). Backward is done with a block before it is done with those before
// it, so that a segment is what ranks can exchange early.
#pragma once

#include <cstdint>
#include <vector>

#include "siamese/models/model.h"

namespace siamese::train {

struct RowSegment {
  static constexpr int64_t kNoBlock = models::Model::kNoBlock;

  int64_t begin = 0;
  int64_t end = 0;
  int64_t block = kNoBlock;
};

// They cover the row. A block may have several. What is too little for so many ranks to be worth a message of its own
// counts as of no block.
// `blocks`: of each parameter (models::Model::blocks_of_parameters).
std::vector<RowSegment> row_segments(const nn::GradientBuffer& gradients, const std::vector<int64_t>& blocks,
                                     int ranks);

}  // namespace siamese::train
