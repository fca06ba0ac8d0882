// Post-Norm (Vaswani et al., arXiv 1706.03762):
//   x_0 = E;   x <- LN_i(x + G_i(x));   output = LN_final(x) with final_norm, else x
// One stream h, which the branch reads as it is. The second norm in a row at the end only re-gains; it is kept by
// default because the published baselines (Mix-LN, LNS) keep it.
#pragma once

#include "siamese/residual/registry.h"

namespace siamese::residual {

struct PostOptions {
  bool final_norm = true;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("final_norm", self.final_norm, "one more norm after the last block");
  }
};

Scheme post_scheme();

// The junction alone, x <- LN(alpha x + G(x)): other schemes use it at some or all of their sites.
std::unique_ptr<Junction> post_junction(const nn::Scope& scope, const Site& site, const Build& build, double alpha = 1);

}  // namespace siamese::residual
