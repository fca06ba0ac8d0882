// Orthogonal residual update (arXiv 2505.11881): of a branch, only what is orthogonal to the stream is added.
//   h_0 = E;   o = G_i(LN_i(h));   h <- h + o - (h.o / (h.h + eps)) h;   output = LN_final(h)
// eps = 1e-6. The dot products are those of one token (over=feature); over=sample: of all tokens of a sample together,
// which no causal model can have. No parameters beyond Pre-Norm's.
#pragma once

#include "siamese/residual/registry.h"

namespace siamese::residual {

enum class DotProducts { feature, sample };

struct OrthogonalOptions {
  DotProducts over = DotProducts::feature;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("over", self.over, "the dot products are those of a token, or of all tokens of a sample together");
  }
};

Scheme orthogonal_scheme();

}  // namespace siamese::residual

template <>
struct siamese::EnumText<siamese::residual::DotProducts> {
  static constexpr EnumNames<residual::DotProducts, 2> names{
      {{residual::DotProducts::feature, "feature"}, {residual::DotProducts::sample, "sample"}}};
};
