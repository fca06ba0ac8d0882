// Rotary frequencies for more positions than a model was first trained with. Of width hd, with inv_j = theta^(-2j/hd),
// j = 0 .. hd/2 - 1, factor f and first context N:
//
//   llama3 (Llama 3.1)      turns = N inv_j / (2 pi);  s = clip((turns - low) / (high - low), 0, 1)
//                           inv'_j = inv_j (s + (1 - s) / f)
//   yarn (arXiv 2309.00071) at(r) = hd ln(N / (2 pi r)) / (2 ln theta);  lo = at(beta_fast), hi = at(beta_slow)
//                           with truncate lo = floor(lo), hi = ceil(hi);  lo = max(lo, 0), hi = min(hi, hd - 1)
//                           ramp_j = clip((j - lo) / (hi - lo), 0, 1)
//                           inv'_j = inv_j (1 - ramp_j) + (inv_j / f) ramp_j;  cos and sin times A
//                           A = attention_factor, or 0.1 ln(f) + 1 (1 for f <= 1) when that is 0
//
// As transformers computes them: f = 1 is plain.
#pragma once

#include <cstdint>
#include <vector>

#include "siamese/base/enum_text.h"

namespace siamese::nn {

enum class RopeScalingKind { none, llama3, yarn };

struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::none;
  double factor = 8;
  int64_t context = 8192;
  double low = 1;  // llama3
  double high = 4;
  double beta_fast = 32;  // yarn
  double beta_slow = 1;
  double attention_factor = 0;
  bool truncate = true;
};

// inv'_j.
std::vector<double> rotary_frequencies(int64_t head_dim, double theta, const RopeScaling& scaling);
// What cos and sin are multiplied by.
double rotary_magnitude(const RopeScaling& scaling);

}  // namespace siamese::nn

template <>
struct siamese::EnumText<siamese::nn::RopeScalingKind> {
  static constexpr EnumNames<nn::RopeScalingKind, 3> names{{{nn::RopeScalingKind::none, "none"},
                                                            {nn::RopeScalingKind::llama3, "llama3"},
                                                            {nn::RopeScalingKind::yarn, "yarn"}}};
};
