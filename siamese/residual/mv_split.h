// MV-Split (arXiv 2605.06169): the mean of a branch over the tokens of a sample and what differs from it meet the
// stream apart. With u = O (its gate included), mean over the tokens of a sample, channel by channel:
//   z = h + beta (u - mean u) + alpha (mean u - mean h)
//   norm=post   h_0 = LN_emb(E);   u = G_i(h);         h <- LN_i(z);   output = h
//   norm=pre    h_0 = E;           u = G_i(LN_i(h));   h <- z;         output = LN_final(h)
// Parameters of a site, kind scalar: alpha (d), 0 at the start, and beta (d), 0.03. A sample is what the first
// dimension counts. It looks at all tokens of a sample, so no causal model can have it.
#pragma once

#include "siamese/residual/registry.h"

namespace siamese::residual {

enum class MvSplitNorm { post, pre };

struct MvSplitOptions {
  MvSplitNorm norm = MvSplitNorm::post;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("norm", self.norm, "the norm acts on what is written, or on what the branch reads");
  }
};

Scheme mv_split_scheme();

}  // namespace siamese::residual

template <>
struct siamese::EnumText<siamese::residual::MvSplitNorm> {
  static constexpr EnumNames<residual::MvSplitNorm, 2> names{
      {{residual::MvSplitNorm::post, "post"}, {residual::MvSplitNorm::pre, "pre"}}};
};
