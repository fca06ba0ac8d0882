// Peri-LN (arXiv 2502.02732): a norm before and after every sublayer.
//   h_0 = LN_emb(E);   h <- h + LN_out,i( G_i( LN_in,i(h) ) );   output = LN_final(h)
// embed_norm=false: h_0 = E.
#pragma once

#include "siamese/residual/registry.h"

namespace siamese::residual {

struct PeriOptions {
  bool embed_norm = true;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("embed_norm", self.embed_norm, "normalise the embedding");
  }
};

Scheme peri_scheme();

// The junction alone, h <- h + LN_out(G(LN_in(h))).
std::unique_ptr<Junction> peri_junction(const nn::Scope& scope, const Site& site, const Build& build);

}  // namespace siamese::residual
