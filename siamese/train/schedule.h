// The learning rate at a step, t = 0, 1, ...; w = warm-up steps, T = steps, r = final share of the peak:
//   warm-up   lr (f + (1 - f) (t + 1) / w)     for t < w, f = warmup_from
//   cosine    lr (r + (1 - r) (1 + cos(pi p)) / 2),  p = (t - w) / (T - w)
//   linear    lr (1 - (1 - r) p)
//   constant  lr
//   wsd       lr until the last `decay` share of the steps, then linear down to r lr
#pragma once

#include <cstdint>

#include "siamese/base/enum_text.h"
#include "siamese/config/use.h"

namespace siamese::train {

enum class ScheduleKind { cosine, linear, constant, wsd };

config::Use of_schedule(std::initializer_list<ScheduleKind> kinds);

struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::cosine;
  int64_t warmup = 0;
  double warmup_from = 0;
  double final = 0.1;
  double decay = 0.2;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("kind", self.kind, "shape of the learning rate after warm-up");
    visit("warmup", self.warmup, "warm-up steps");
    visit("warmup_from", self.warmup_from,
          {"share of the peak rate from which warm-up starts", config::with({"optim.schedule.warmup"})});
    visit("final", self.final,
          {"share of the peak rate at the end",
           of_schedule({ScheduleKind::cosine, ScheduleKind::linear, ScheduleKind::wsd})});
    visit("decay", self.decay, {"share of all steps in which the rate falls", of_schedule({ScheduleKind::wsd})});
  }
};

double learning_rate(const ScheduleConfig& schedule, double peak, int64_t step, int64_t steps);

}  // namespace siamese::train

template <>
struct siamese::EnumText<siamese::train::ScheduleKind> {
  static constexpr EnumNames<train::ScheduleKind, 4> names{{{train::ScheduleKind::cosine, "cosine"},
                                                            {train::ScheduleKind::linear, "linear"},
                                                            {train::ScheduleKind::constant, "constant"},
                                                            {train::ScheduleKind::wsd, "wsd"}}};
};
