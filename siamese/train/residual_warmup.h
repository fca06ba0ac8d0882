// Residual warm-up (ProRes, arXiv 2603.05369): a factor alpha(l, t) on what both branches of block l write, where their
// gate acts (residual/streams.h), under any scheme. t = steps already taken, L blocks, W = residual_warmup_steps,
// D_l = floor(W / L) + l (W - floor(W / L)) / (L - 1), the step at which block l is whole (of one block: W):
//   linear     clip(t / D_l)         one block after the other, the first soonest
//   equal      clip(t / W)           all together
//   reverse    clip(t / D_(L-1-l))   the last soonest
//   sqrt       clip(sqrt(t / D_l))
//   square     clip((t / D_l)^2)
//   stagewise  clip(a + (1 - a) (t - D_(l-1)) / (D_l - D_(l-1)), a, 1), D_(-1) = 0: each begins where the one before it
//              ends, at a = 0; stagewise_depth: a = 1 / L, stagewise_sqrt_depth: 1 / sqrt(L), stagewise_sqrt_block:
//              1 / sqrt(l + 1)
// clip: to [0, 1]. From t = W on every factor is 1, and there is none.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "siamese/base/enum_text.h"

namespace siamese::train {

struct RunConfig;

enum class ResidualWarmup {
  none,
  linear,
  equal,
  reverse,
  sqrt,
  square,
  stagewise,
  stagewise_depth,
  stagewise_sqrt_depth,
  stagewise_sqrt_block
};

// Where nobody says how long it is: the recipe's steps for each block.
constexpr int64_t kWarmupStepsOfABlock = 1000;

// alpha of each block; empty: all are 1. `steps` >= `blocks`.
std::vector<double> branch_scales(ResidualWarmup schedule, int64_t steps, int64_t blocks, int64_t step);
// As the config says, after `step` steps.
std::vector<double> branch_scales(const RunConfig& config, int64_t step);

// DataError when the checkpoint, if it is one of a run, was saved in the middle of a warm-up: its weights without its
// step are another model. The same when its config is not the one it was saved under.
void check_warmed_up(const std::filesystem::path& checkpoint);

}  // namespace siamese::train

template <>
struct siamese::EnumText<siamese::train::ResidualWarmup> {
  using Kind = train::ResidualWarmup;
  static constexpr EnumNames<Kind, 10> names{{{Kind::none, "none"},
                                              {Kind::linear, "linear"},
                                              {Kind::equal, "equal"},
                                              {Kind::reverse, "reverse"},
                                              {Kind::sqrt, "sqrt"},
                                              {Kind::square, "square"},
                                              {Kind::stagewise, "stagewise"},
                                              {Kind::stagewise_depth, "stagewise_depth"},
                                              {Kind::stagewise_sqrt_depth, "stagewise_sqrt_depth"},
                                              {Kind::stagewise_sqrt_block, "stagewise_sqrt_block"}}};
};
