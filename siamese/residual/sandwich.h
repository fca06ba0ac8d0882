// Sandwich-LN (CogView, arXiv 2105.13290): Peri-LN's junction on the raw embedding.
//   h_0 = E;   h <- h + LN_out,i( G_i( LN_in,i(h) ) );   output = LN_final(h)
#pragma once

#include "siamese/residual/registry.h"

namespace siamese::residual {

Scheme sandwich_scheme();

}  // namespace siamese::residual
