// Sees what attention compares, site by site of a pass (StackOptions::watch), for measures of its weights: kernels
// never hold those. A pass without one computes nothing for it.
#pragma once

#include <cstdint>
#include <vector>

#include "siamese/ops/attention_heads.h"
#include "siamese/residual/site.h"

namespace siamese::models {

struct WatchedAttention {
  ops::AttentionHeads heads;         // normed and rotated
  bool causal = true;                // a token sees itself and those before it; else all
  int64_t window = 0;                // at most so many, itself among them; 0: all
  std::vector<int64_t> pieces = {};  // lengths of documents that do not see each other; empty: each row is one
};

class AttentionWatch {
 public:
  virtual ~AttentionWatch() = default;
  // Before the branch of `site` is computed.
  virtual void attention(const residual::Site& site, const WatchedAttention& watched) = 0;
};

}  // namespace siamese::models
