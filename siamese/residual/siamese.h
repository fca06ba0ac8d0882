// SiameseNorm (arXiv 2602.08064): two streams share every sublayer, X normalised like Post-Norm, Y raw like Pre-Norm.
// form=read (the published DeiT and DiT files): X is kept un-normalised between sites and normalised when read.
//   open   X_0 = Y_0 = E
//   read   X <- P_i(X);   branch input = I_i( X + Q_i(Y) )          (input_norm=false: no I_i)
//   write  X <- X + O / c_i;   Y <- Y + O
//   close  output = F( P(X) + Q(Y) )                                (final_norm=false: no F)
// form=write (the paper's Algorithm 1): X is normalised when written, and X_0 is the raw embedding.
//   read   branch input = I_i( X + Q_i(Y) )
//   write  X <- P_i( X + O / c_i );   Y <- Y + O
//   close  output = X + Q(Y)                                        (final_norm=true: F of it)
// Algorithm 1 as printed is siamese(form=write, input_norm=false, depth_scale=none). The read form is the write form
// with X_0 = P_0(E), its norms one index later.
// c_i, depth_scale: block sqrt(2 (l+1)) | sublayer sqrt(i+1) | layer sqrt(l+1) | none 1, with l the block and i the
// site, both from 0. x=hybrid (the published language-model file; form=read only): X is normalised once a block,
// between attention and FFN; attention has norms on q, k and v, and a learned vector c1 (ones at start) in place of the
// norm that X lacks there:
//   attention read   branch input = c1_l * X + Q_a(Y);   X stays as it is
//   FFN read         X <- P_f(X);   branch input = I_f( X + Q_f(Y) )
// gain_x is where the gains of X's norms start (every P_i, P at the close, and c1), gain_y those of Y's (every Q_i and
// Q); 1 as published. I_i and F always start at 1: they act on the sum of both.
// Six norms a block (x=hybrid: four, three over heads, c1) and three at the end.
#pragma once

#include "siamese/residual/registry.h"

namespace siamese::residual {

enum class SiameseX { post, hybrid };
enum class SiameseForm { read, write };
enum class DepthScale { block, sublayer, layer, none };

struct SiameseOptions {
  SiameseX x = SiameseX::post;
  SiameseForm form = SiameseForm::read;
  bool input_norm = true;
  DepthScale depth_scale = DepthScale::block;
  bool final_norm = true;
  double gain_x = 1;
  double gain_y = 1;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("x", self.x, "at which sites the X stream is normalised: at all, or before the FFN only");
    visit("form", self.form, "X is normalised when it is read, or when it is written");
    visit("input_norm", self.input_norm, "normalise the merged sum before the branch (Normalized Input)");
    visit("depth_scale", self.depth_scale, "what damps the branch on its way into X (Depth-wise Scaling)");
    visit("final_norm", self.final_norm, "normalise the merged sum at the end; default false for form=write");
    visit("gain_x", self.gain_x, "where the gains of X's norms (and c1) start");
    visit("gain_y", self.gain_y, "where the gains of Y's norms start");
  }
  SiameseOptions defaults() const;
  void check() const;
};

Scheme siamese_scheme();

}  // namespace siamese::residual

template <>
struct siamese::EnumText<siamese::residual::SiameseX> {
  static constexpr EnumNames<residual::SiameseX, 2> names{
      {{residual::SiameseX::post, "post"}, {residual::SiameseX::hybrid, "hybrid"}}};
};

template <>
struct siamese::EnumText<siamese::residual::SiameseForm> {
  static constexpr EnumNames<residual::SiameseForm, 2> names{
      {{residual::SiameseForm::read, "read"}, {residual::SiameseForm::write, "write"}}};
};

template <>
struct siamese::EnumText<siamese::residual::DepthScale> {
  static constexpr EnumNames<residual::DepthScale, 4> names{{{residual::DepthScale::block, "block"},
                                                             {residual::DepthScale::sublayer, "sublayer"},
                                                             {residual::DepthScale::layer, "layer"},
                                                             {residual::DepthScale::none, "none"}}};
};
