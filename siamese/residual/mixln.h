// Mix-LN (arXiv 2412.13795): the first K = floor(post L) of L blocks are Post-Norm, the others Pre-Norm, on one stream.
//   l <  K:  x <- LN_i(x + G_i(x));      l >= K:  x <- x + G_i(LN_i(x));      x_0 = E;   output = LN_final(x)
#pragma once

#include "siamese/residual/registry.h"

namespace siamese::residual {

struct MixLnOptions {
  double post = 0.25;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("post", self.post, "share of the blocks, from the first, that are Post-Norm");
  }
  void check() const;
  int64_t post_blocks(int64_t blocks) const;  // floor(post blocks)
};

Scheme mixln_scheme();

}  // namespace siamese::residual
