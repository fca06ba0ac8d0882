#include "siamese/train/residual_warmup.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/io/run_dir.h"
#include "siamese/train/config.h"
#include "siamese/train/config_keys.h"
#include "siamese/train/trainer_state.h"

namespace siamese::train {
namespace residual_warmup_detail {

// D_l: the step at which block l is whole; D_(-1) = 0.
double whole_at(int64_t steps, int64_t blocks, int64_t block) {
  if (block < 0) return 0;
  if (blocks == 1) return static_cast<double>(steps);
  const int64_t first = steps / blocks;
  return static_cast<double>(first) +
         static_cast<double>(block) * static_cast<double>(steps - first) / static_cast<double>(blocks - 1);
}

double stage(int64_t steps, int64_t blocks, int64_t block, double now, double from) {
  const double begin = whole_at(steps, blocks, block - 1), end = whole_at(steps, blocks, block);
  return std::clamp(from + (1 - from) * (now - begin) / (end - begin), from, 1.0);
}

double alpha(ResidualWarmup schedule, int64_t steps, int64_t blocks, int64_t block, double now) {
  const auto clip = [](double share) { return std::clamp(share, 0.0, 1.0); };
  const double share = now / whole_at(steps, blocks, block);
  const auto depth = static_cast<double>(blocks);
  switch (schedule) {
    case ResidualWarmup::linear:
      return clip(share);
    case ResidualWarmup::equal:
      return clip(now / static_cast<double>(steps));
    case ResidualWarmup::reverse:
      return clip(now / whole_at(steps, blocks, blocks - 1 - block));
    case ResidualWarmup::sqrt:
      return clip(std::sqrt(share));
    case ResidualWarmup::square:
      return clip(share * share);
    case ResidualWarmup::stagewise:
      return stage(steps, blocks, block, now, 0);
    case ResidualWarmup::stagewise_depth:
      return stage(steps, blocks, block, now, 1 / depth);
    case ResidualWarmup::stagewise_sqrt_depth:
      return stage(steps, blocks, block, now, 1 / std::sqrt(depth));
    case ResidualWarmup::stagewise_sqrt_block:
      return stage(steps, blocks, block, now, 1 / std::sqrt(static_cast<double>(block + 1)));
    case ResidualWarmup::none:
      break;
  }
  return 1;
}

}  // namespace residual_warmup_detail

std::vector<double> branch_scales(ResidualWarmup schedule, int64_t steps, int64_t blocks, int64_t step) {
  if (schedule == ResidualWarmup::none || step >= steps) return {};
  std::vector<double> scales;
  for (int64_t block = 0; block < blocks; ++block) {
    scales.push_back(residual_warmup_detail::alpha(schedule, steps, blocks, block, static_cast<double>(step)));
  }
  return scales;
}

std::vector<double> branch_scales(const RunConfig& config, int64_t step) {
  return branch_scales(config.train.residual_warmup, config.train.residual_warmup_steps, config.model.blocks, step);
}

void check_warmed_up(const std::filesystem::path& checkpoint) {
  // Weights alone are those of whole branches.
  if (!is_there(checkpoint / io::kTrainerFile) || !is_there(checkpoint / io::kConfigFile)) return;
  const RunConfig config = read_config_file((checkpoint / io::kConfigFile).string());
  const TrainerState state = read_trainer_state(checkpoint / io::kTrainerFile);
  check_unchanged(config, state, checkpoint / io::kConfigFile);  // a file that was cut still reads as a config
  const int64_t step = state.step;
  if (branch_scales(config, step).empty()) return;
  throw DataError(fmt::format(
      "{}: step {} lies in the residual warm-up (train.residual_warmup {}, {} steps), so that its weights without its "
      "step are another model: expected a checkpoint from step {} on",
      checkpoint.string(), step, enum_text(config.train.residual_warmup), config.train.residual_warmup_steps,
      config.train.residual_warmup_steps));
}

}  // namespace siamese::train
