// ResiDual (arXiv 2304.14802): a Post-Norm stream that every sublayer reads, and a raw sum that only the end reads.
//   x_0 = E;   r_0 = s E;   o = G_i(x);   r <- r + s o;   x <- LN_i(x + o);   output = a x + LN_final(r)
// s only keeps r from overflowing in half precision: LN_final takes it out again.
#pragma once

#include "siamese/residual/registry.h"

namespace siamese::residual {

struct ResiDualOptions {
  double residual_scale = 1;
  double x_weight = 1;
  double final_eps = 0;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("residual_scale", self.residual_scale, "s, the scale of the raw sum");
    visit("x_weight", self.x_weight, "a, the weight of the Post-Norm stream at the end");
    visit("final_eps", self.final_eps, "eps of the final norm (the authors' code: 1e-7); 0 = model.norm_eps");
  }
  void check() const;
};

Scheme resi_dual_scheme();

}  // namespace siamese::residual
