// HybridNorm (arXiv 2503.04598), every block, attention with per-head norms of q, k and v:
//   y = x + A(x);   z = LN_f(y);   x' = z + F(z);   x_0 = E;   output = LN_final(x)
// The norm between attention and FFN is on the residual path: its output feeds the FFN and is the base it adds to.
// first=pre (HybridNorm*): block 0 is Pre-Norm, y = x + A(LN_a(x)), x' = y + F(LN_f(y)), and keeps the q, k, v norms.
#pragma once

#include "siamese/residual/registry.h"

namespace siamese::residual {

enum class HybridFirst { hybrid, pre };

struct HybridOptions {
  HybridFirst first = HybridFirst::hybrid;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("first", self.first, "what block 0 is");
  }
};

Scheme hybrid_scheme();

}  // namespace siamese::residual

template <>
struct siamese::EnumText<siamese::residual::HybridFirst> {
  static constexpr EnumNames<residual::HybridFirst, 2> names{
      {{residual::HybridFirst::hybrid, "hybrid"}, {residual::HybridFirst::pre, "pre"}}};
};
