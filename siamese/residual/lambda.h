// The x0 residual with backout, as nanochat has it: before each block the stream is scaled and the embedding comes in
// again, and at the end a share of the middle's state is taken out.
//   open    h = e = LN_emb(E)                    (embed_norm=false: E)
//   block l h <- r_l h + m_l e                   before attention (x0=false: r_l h)
//           h <- h + A_l(LN_a h);   h <- h + F_l(LN_f h)
//   mark    c = h after block floor(backout L)   (backout=none: no c)
//   close   output = LN_final( h - beta c )
// Streams h, e and, after the mark, c. Parameters, kind scalar: at attention sites `scale` (r_l), 1.15 at the first
// block to 1.05 at the last, and `x0_scale` (m_l), 0.20 to 0.05, both linear in depth; at the close `backout` (beta),
// 0.2. nanochat's norms have no gain; ours have theirs.
#pragma once

#include "siamese/residual/registry.h"

namespace siamese::residual {

// Where the state is marked that is taken out at the end: after block floor(depth L), or nowhere.
struct Backout {
  bool on = true;
  double depth = 0.5;
};
// "none", or the fraction.
void read(const config::Value& value, const std::string& path, Backout& out);
config::Value print(const Backout& backout);

struct LambdaOptions {
  bool x0 = true;
  Backout backout;
  bool embed_norm = true;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("x0", self.x0, "the embedding comes in again before each block");
    visit("backout", self.backout,
          "fraction of the depth after which the state is marked that the end takes a share of out; none: no share");
    visit("embed_norm", self.embed_norm, "normalise the embedding");
  }
  void check() const;
  // The last block before the mark; -1: no mark.
  int64_t marked_block(int64_t blocks) const;
};

Scheme lambda_scheme();

}  // namespace siamese::residual
