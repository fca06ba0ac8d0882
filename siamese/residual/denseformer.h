// DenseFormer (arXiv 2402.02622): Pre-Norm blocks; after a block its input to the next is a learned average of the
// outputs of all blocks so far and the embedding. With y_0 = E and y_n what block n-1 gives (n = 1 ... L):
//   h <- h + G_i(LN_i(h))                                   the two sites of a block
//   y_n = h;   h <- sum_j alpha_n,j y_j   if period divides n, over j <= n with j = n modulo dilation
//   output = LN_final(h)
// Outputs are remembered as they were before averaging. Streams h and y_j, for the outputs that a later average reads.
// Parameters: at FFN sites with an average `mix` (alpha_n), floor(n / dilation) + 1 numbers in the order of j, kind
// stream_mix, at the start (0, ..., 0, 1): Pre-Norm. They are not normalised and may become negative.
#pragma once

#include "siamese/residual/registry.h"

namespace siamese::residual {

struct DenseFormerOptions {
  int64_t dilation = 1;
  int64_t period = 1;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("dilation", self.dilation, "an average takes every so many-th output, counted back from its own");
    visit("period", self.period, "an average after every so many blocks");
  }
  void check() const;

  bool averages(int64_t n) const { return n % period == 0; }
  // Of the outputs 0 ... n, in order: those that average n takes; those that one after n will, in a model of `blocks`.
  std::vector<int64_t> taken(int64_t n) const;
  std::vector<int64_t> kept(int64_t n, int64_t blocks) const;
};

Scheme denseformer_scheme();

}  // namespace siamese::residual
