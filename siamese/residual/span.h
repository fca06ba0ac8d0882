// SpanNorm (arXiv 2601.22580): the skip spans the whole block, so one norm a block lies on the residual path.
//   x_0 = E;   u_0 = LN_0(x_0), u_l = x_l after it
//   y = LN_a,l( x + A_l(u) );   x <- LN_f,l( x + F_l(y) );   output = x
// The FFN's skip goes back to the block's input x, not to y. No official code was found: this follows two independent
// implementations that cite the paper's equations 5 to 8 (docs/schemes.md). reading=c is what a summary of the abstract
// suggests instead, per sublayer: x <- LN_i( x + G_i( LN_in,i(x) ) ).
#pragma once

#include "siamese/residual/registry.h"

namespace siamese::residual {

enum class SpanReading { a, c };

struct SpanOptions {
  SpanReading reading = SpanReading::a;
  bool final_norm = false;
  double output_init = 1;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("reading", self.reading, "the skip spans the block (a) or each sublayer, with a norm inside (c)");
    visit("final_norm", self.final_norm, "one more norm after the last block");
    visit("output_init", self.output_init,
          "factor on the output projections at the start, on top of the init rule's own factor of depth");
  }
  void check() const;
};

Scheme span_scheme();

}  // namespace siamese::residual

template <>
struct siamese::EnumText<siamese::residual::SpanReading> {
  static constexpr EnumNames<residual::SpanReading, 2> names{
      {{residual::SpanReading::a, "a"}, {residual::SpanReading::c, "c"}}};
};
