// Keel (arXiv 2601.19895): Post-Norm with a strong skip and a second norm inside.
//   x_0 = E;   x <- LN_i( alpha x + G_i( LN_in,i(x) ) ), alpha = 2L;   output = LN_final(x)
// Block 0 must not shrink the raw embedding. variant=a: block 0 is Pre-Norm. variant=b: in block 0 alpha = 1 and
// attention has no outer norm, the FFN has one.
#pragma once

#include "siamese/residual/registry.h"

namespace siamese::residual {

enum class KeelVariant { a, b };

struct KeelOptions {
  KeelVariant variant = KeelVariant::a;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("variant", self.variant, "block 0 is Pre-Norm (a), or its FFN keeps the outer norm (b)");
  }
};

Scheme keel_scheme();

// The junction alone, x <- LN(alpha x + G(LN_in(x))).
std::unique_ptr<Junction> keel_junction(const nn::Scope& scope, const Site& site, const Build& build, double alpha);

}  // namespace siamese::residual

template <>
struct siamese::EnumText<siamese::residual::KeelVariant> {
  static constexpr EnumNames<residual::KeelVariant, 2> names{
      {{residual::KeelVariant::a, "a"}, {residual::KeelVariant::b, "b"}}};
};
