// mHC, manifold-constrained hyper-connections (arXiv 2512.24880): HC whose mixing of streams is doubly stochastic.
//   v = vec(x), all n d numbers of a token;   raw = v phi / sqrt(mean(v^2) + eps)  -> pre (n), post (n), res (n x n)
//   H_pre = sigmoid(a_pre raw_pre + b_pre);   H_post = 2 sigmoid(a_post raw_post + b_post)
//   H_res = Sinkhorn(a_res raw_res + b_res):  exp, then `iterations` times: columns to sum 1, rows to sum 1
//   x <- H_res x + H_post^T G_i( LN_i( H_pre x ) );   x_0 = n copies of E;   output = LN_final(sum of the streams)
// res chooses H_res:
//   sinkhorn       as above
//   identity       H_res = I (iHC): streams are never mixed; phi has the rows pre and post alone, and there is no b_res
//   permutations   (mHC-lite, arXiv 2601.05732) c = softmax(a_res raw_res + b_res) over the n! permutations in
//                  lexicographic order; H_res = sum_r c_r P_r: stream i goes to stream perm_r(i). Doubly stochastic to
//                  rounding. Rows of phi and b_res: n! in place of n x n
// a_* = 0.01 at the start; phi and the biases are not stated by the paper. init=single: phi = 0, b_pre = +3 at stream
// i mod n and -3 elsewhere, b_post = 0, b_res = +3 on the diagonal and -3 off it: close to Pre-Norm. init=xavier: phi
// Xavier-uniform, biases 0: the streams are averaged at once. Of permutations, b_res is 0 for the identity and -8 for
// the others with init=single, as its authors have it; they also start phi's input with a gain of its own and b_post
// like b_pre (+1, -1), where ours are mhc's.
// Parameters of a site: mix.weight (phi, [n^2 + 2n, n d]), which decays; mix_scale (a_pre, a_post, a_res), pre_bias,
// post_bias, res_bias, which do not.
#pragma once

#include "siamese/residual/registry.h"

namespace siamese::residual {

enum class MhcRes { sinkhorn, identity, permutations };
enum class MhcInit { single, xavier };

struct MhcOptions {
  int64_t streams = 4;
  MhcRes res = MhcRes::sinkhorn;
  MhcInit init = MhcInit::single;
  int64_t iterations = 20;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("streams", self.streams, "n, the copies of the hidden state, 1 to 16");
    visit("res", self.res, "what mixes the streams: a matrix made doubly stochastic, none, or a mean of permutations");
    visit("init", self.init, "how the mixing starts: close to one Pre-Norm stream, or with all streams averaged");
    visit("iterations", self.iterations, "of Sinkhorn's normalisation, 1 to 1000");
  }
  void check() const;
  int64_t res_logits() const;  // for each token
};

Scheme mhc_scheme();

}  // namespace siamese::residual

template <>
struct siamese::EnumText<siamese::residual::MhcRes> {
  static constexpr EnumNames<residual::MhcRes, 3> names{{{residual::MhcRes::sinkhorn, "sinkhorn"},
                                                         {residual::MhcRes::identity, "identity"},
                                                         {residual::MhcRes::permutations, "permutations"}}};
};

template <>
struct siamese::EnumText<siamese::residual::MhcInit> {
  static constexpr EnumNames<residual::MhcInit, 2> names{
      {{residual::MhcInit::single, "single"}, {residual::MhcInit::xavier, "xavier"}}};
};
