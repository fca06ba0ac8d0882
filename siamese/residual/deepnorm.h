// DeepNorm (arXiv 2203.00555), decoder-only or encoder-only of L blocks:
//   x_0 = E;   x <- LN_i(alpha x + G_i(x));   output = x;   alpha = (2L)^(1/4)
// At the start the value, attention output and all FFN matrices are multiplied by beta = (8L)^(-1/4), query and key are
// not, and the init rule's own factor of depth does not apply.
#pragma once

#include "siamese/residual/registry.h"

namespace siamese::residual {

Scheme deepnorm_scheme();

}  // namespace siamese::residual
