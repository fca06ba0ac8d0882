// Hyper-Connections (arXiv 2409.19606): n copies of the hidden state H, mixed by learned weights at every site.
//   h = A_m^T H;   H <- A_r^T H;   o = G_i(LN_i(h));   H_j <- H_j + B_j o;   output = LN_final(sum_j H_j)
// dynamic=false: A_m (n), A_r (n x n), B (n) are parameters. dynamic=true adds, per token, with Hbar = norm(H) by row:
//   A_m = s_a tanh(Hbar W_m) + A_m,   A_r = s_a tanh(Hbar W_r) + A_r,   B = s_b tanh(Hbar W_b) + B
// At the start A_m is one-hot at stream i mod n, A_r the identity, B ones, W zero, s_a = s_b = 0.01: Pre-Norm.
// Parameters of a site: input_mix (A_m), stream_mix (A_r), output_mix (B), which do not decay; and, dynamic,
// stream_norm, dynamic.weight (n + 2 rows of width d: W_m, W_r, W_b), which decays, mix_scale (s_a) and output_scale
// (s_b).
#pragma once

#include "siamese/residual/registry.h"

namespace siamese::residual {

struct HcOptions {
  int64_t streams = 4;
  bool dynamic = true;
  bool tanh = true;
  double output_init = 1;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("streams", self.streams, "n, the copies of the hidden state, 1 to 16");
    visit("dynamic", self.dynamic, "the mixing depends on the token");
    visit("tanh", self.tanh, "bounds the dynamic part");
    visit("output_init", self.output_init, "factor on the output projections at the start (the paper: sqrt(n))");
  }
  void check() const;
};

Scheme hc_scheme();

}  // namespace siamese::residual
