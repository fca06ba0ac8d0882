// Facts about a scheme, counted on the scheme itself.
#pragma once

#include <string>

#include "siamese/residual/registry.h"

namespace siamese::residual {

inline constexpr int64_t kFactBlocks = 8;

struct SchemeFacts {
  int64_t streams = 0;          // before the first block
  int64_t most_streams = 0;     // between two of kFactBlocks blocks, or at the close
  int64_t norms_per_block = 0;  // of the streams' width, in a block of the middle
  int64_t norms_at_ends = 0;    // of the same kind, at the open and the close
  // Parameters of such a block's junctions beyond Pre-Norm's two norms: per_width * width + constant.
  int64_t extra_per_width = 0;
  int64_t extra_constant = 0;
};

SchemeFacts scheme_facts(const std::string& text);

// "2", or "1 to 17 in 8 blocks" where a scheme gains streams with depth.
std::string streams_text(const SchemeFacts& facts);

// "4 d", "-1 d", "10 d + 52", "0".
std::string extra_parameters_text(const SchemeFacts& facts);

}  // namespace siamese::residual
