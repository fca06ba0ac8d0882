#include "siamese/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace siamese::train {

config::Use of_schedule(std::initializer_list<ScheduleKind> kinds) {
  return config::for_values("optim.schedule.kind", kinds);
}

double learning_rate(const ScheduleConfig& schedule, double peak, int64_t step, int64_t steps) {
  const auto warmup = static_cast<double>(schedule.warmup);
  const auto now = static_cast<double>(step);
  const auto total = static_cast<double>(steps);
  if (now < warmup) return peak * (schedule.warmup_from + (1 - schedule.warmup_from) * (now + 1) / warmup);
  const double progress = std::clamp((now - warmup) / std::max(1.0, total - warmup), 0.0, 1.0);
  switch (schedule.kind) {
    case ScheduleKind::cosine:
      return peak * (schedule.final + (1 - schedule.final) * (1 + std::cos(std::numbers::pi * progress)) / 2);
    case ScheduleKind::linear:
      return peak * (1 - (1 - schedule.final) * progress);
    case ScheduleKind::wsd: {
      const double decay_steps = std::max(1.0, schedule.decay * total);
      const double into_decay = std::clamp((now - (total - decay_steps)) / decay_steps, 0.0, 1.0);
      return peak * (1 - (1 - schedule.final) * into_decay);
    }
    case ScheduleKind::constant:
      break;
  }
  return peak;
}

}  // namespace siamese::train
