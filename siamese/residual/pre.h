// Pre-Norm (Xiong et al., arXiv 2002.04745):
//   h_0 = E;   h <- h + G_i(LN_i(h));   output = LN_final(h)
// One stream h; two norms a block and one at the end.
#pragma once

#include "siamese/residual/registry.h"

namespace siamese::residual {

Scheme pre_scheme();

// The junction alone, h <- h + G(scale * LN(h)): other schemes use it at some or all of their sites. h is the first
// stream; any others stay as they are.
std::unique_ptr<Junction> pre_junction(const nn::Scope& scope, const Site& site, const Build& build, double scale = 1);

}  // namespace siamese::residual
