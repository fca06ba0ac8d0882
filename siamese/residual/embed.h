// EmbedNorm: Pre-Norm whose stream starts from the normalised embedding (OLMo's embedding_layer_norm).
//   h_0 = LN_emb(E);   h <- h + G_i(LN_i(h));   output = LN_final(h)
#pragma once

#include "siamese/residual/registry.h"

namespace siamese::residual {

Scheme embed_scheme();

}  // namespace siamese::residual
