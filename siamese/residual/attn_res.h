// Attention Residuals (arXiv 2603.15031): what a branch reads is a softmax over depth of everything written so far.
// A read at site i of the sources V_0 ... V_m, with a query w and a key gain g of its own:
//   s_j = w . rms(V_j; g);   a = softmax_j(s);   h = sum_j a_j V_j;   branch input = LN_i(h)
// Full form: every branch output is a source.
//   open   v_0 = E
//   read   sources v_0 ... v_i;   write  v_{i+1} = G_i( LN_i(h) )
//   close  LN_final( a read of v_0 ... v_2L )
// block=S: the branch outputs of S blocks are summed into one source; E stays one of its own.
//   open   b_0 = E, p is empty
//   at the attention of block l, where S divides l > 0:  b_{l/S} = p, then p is empty
//   read   sources b_0 ... b_k, and p unless it is empty;   write  p = p + O, or O where p was empty
//   close  LN_final( a read of b_0 ... b_k, p ); the last p may be short
// Keys are normalised by RMSNorm whatever model.norm is, with its eps; values are raw, and there is no 1 / sqrt(d).
// Site 0 has one source and no query. Queries start at 0: the mean of the sources, which LN_i turns into Pre-Norm.
// Streams: v0 ..., or b0 ... and p; their number grows with depth.
#pragma once

#include "siamese/residual/registry.h"

namespace siamese::residual {

struct AttnResOptions {
  int64_t block = 0;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("block", self.block, "S, the blocks whose branches add up to one source; 0: each branch is a source");
  }
  void check() const;
};

Scheme attn_res_scheme();

}  // namespace siamese::residual
