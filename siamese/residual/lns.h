// LayerNorm Scaling (arXiv 2502.05795): Pre-Norm whose norm output shrinks with depth.
//   h_0 = E;   h <- h + G_i( LN_i(h) / sqrt(l+1) );   output = LN_final(h), not scaled;   l = block, from 0
// The authors warn that output projections scaled by 1 / sqrt(2L) at the start take most of the benefit away, so the
// scheme asks for none.
#pragma once

#include "siamese/residual/registry.h"

namespace siamese::residual {

Scheme lns_scheme();

}  // namespace siamese::residual
