// One Muon step (Jordan et al. 2024, kellerjordan.github.io/posts/muon; with decay and scale as Liu et al.,
// arXiv 2502.16982, and torch.optim.Muon), in place, for matrices W [rows, cols] with a momentum m of their shape:
//   g <- clip * g;  m <- mu m + (1 - mu) g;  u = mu m + (1 - mu) g                                       (Nesterov)
//   W <- (1 - lr * decay) W - lr * s(rows, cols) * NS(u)
//   NS(u): X = u / max(|u|_F, 1e-7), transposed where rows > cols; five times
//          A = X X^T;  X <- 3.4445 X + (-4.7750 A + 2.0315 A A) X
// which takes the singular values of u to about 1 (0.7 to 1.2). In the type of the weights, float32 in training: the
// papers' bfloat16 gains nothing on a CPU that does not multiply it, and the bits of a product in float32 are those of
// ops/product at any number of threads. With rows <= cols it is 5 (4 rows^2 cols + 2 rows^3) operations.
//
// A weight may hold several matrices: dimension 0 of a weight of three counts experts, and `rows` says where the
// matrices of one begin. Each is orthogonalised by itself: q, k and v, or up and gate, lie in one weight so that one
// product makes them all; together they would share the singular values, and the scale, of a map that does not exist.
// A function of C++ and no op of the dispatcher, as ops/adamw.h.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/base/enum_text.h"

namespace siamese::ops {

// s(rows, cols). match_rms_adamw: 0.2 sqrt(max(rows, cols)), an update about as large as AdamW's, so that its rates and
// decay can be kept; original: sqrt(max(1, rows / cols)).
enum class MuonScale { match_rms_adamw, original };
double muon_scale(MuonScale scale, int64_t rows, int64_t cols);

struct MuonArguments {
  double lr = 0;
  double momentum = 0.95;
  double clip_scale = 1;
  MuonScale scale = MuonScale::match_rms_adamw;
};

struct MuonTensors {
  at::Tensor gradient;   // undefined: the weight was no part of this step and stays
  at::Tensor parameter;  // [rows, cols] or [experts, rows, cols]; float32 or double
  at::Tensor momentum;
  std::vector<int64_t> rows;  // of each matrix; they add up to the parameter's
  double weight_decay = 0;
  double lr_scale = 1;  // multiplies lr, for the decay too
};

void muon_step(const MuonArguments& arguments, const std::vector<MuonTensors>& list);

// NS(u) of a matrix.
at::Tensor newton_schulz(const at::Tensor& u);
double newton_schulz_flops(int64_t rows, int64_t cols);

}  // namespace siamese::ops

template <>
struct siamese::EnumText<siamese::ops::MuonScale> {
  static constexpr EnumNames<ops::MuonScale, 2> names{
      {{ops::MuonScale::match_rms_adamw, "match_rms_adamw"}, {ops::MuonScale::original, "original"}}};
};
