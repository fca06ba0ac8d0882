// OLMo 2's reordered norm (arXiv 2501.00656): the norm is on the sublayer's output, inside the residual connection.
//   h_0 = E;   h <- h + LN_i(G_i(h));   output = LN_final(h)
// The sublayer reads h as it is; attention normalises the whole projected q and k before they are split into heads.
#pragma once

#include "siamese/residual/registry.h"

namespace siamese::residual {

Scheme olmo2_scheme();

}  // namespace siamese::residual
