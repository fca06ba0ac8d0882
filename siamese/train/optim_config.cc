#include "siamese/train/optim_config.h"

#include <utility>

#include "siamese/base/check.h"
#include "siamese/config/fields.h"

namespace siamese::train {
namespace optim_config {

void require(bool ok, const std::string& key, const std::string& expected, double got) {
  if (!ok) throw UsageError("optim." + key + ": expected " + expected + ", got " + config::print(got).text);
}

// The field of a struct with one for each kind.
template <class PerKind>
auto value_of(const PerKind& values, nn::ParameterKind kind) {
  switch (kind) {
    case nn::ParameterKind::linear:
      return values.linear;
    case nn::ParameterKind::bias:
      return values.bias;
    case nn::ParameterKind::norm:
      return values.norm;
    case nn::ParameterKind::embedding:
      return values.embedding;
    case nn::ParameterKind::scalar:
      return values.scalar;
    case nn::ParameterKind::stream_mix:
      break;
  }
  return values.stream_mix;
}

}  // namespace optim_config

std::string kind_key(nn::ParameterKind kind) { return "parameters." + std::string(enum_text(kind)); }

config::Use of_optimizer(OptimizerName name) { return config::for_values("optim.name", {name}); }

config::Use of_kind(nn::ParameterKind kind) {
  config::Use use = config::with({kind_key(kind)});
  use.decided_by = {"model"};
  use.lacking = "no parameter of this model is of kind " + std::string(enum_text(kind));
  return use;
}

bool DecayConfig::decays(nn::ParameterKind kind) const { return optim_config::value_of(*this, kind); }

double LrScaleConfig::of(nn::ParameterKind kind) const { return optim_config::value_of(*this, kind); }

void check(const OptimConfig& optim) {
  using optim_config::require;
  require(optim.lr > 0, "lr", "a number > 0", optim.lr);
  for (const auto& [key, decay] : {std::pair{"beta1", optim.beta1}, std::pair{"beta2", optim.beta2},
                                   std::pair{"muon.momentum", optim.muon.momentum}}) {
    require(decay >= 0 && decay < 1, key, "a number in [0, 1)", decay);
  }
  require(optim.eps > 0, "eps", "a number > 0", optim.eps);
  require(optim.weight_decay >= 0, "weight_decay", "a number >= 0", optim.weight_decay);
  require(optim.clip >= 0, "clip", "a number >= 0 (0 = no clipping)", optim.clip);
  require(optim.muon.lr_scale > 0, "muon.lr_scale", "a number > 0", optim.muon.lr_scale);
  for (const auto& [kind, text] : EnumText<nn::ParameterKind>::names) {
    const double scale = optim.lr_scale.of(kind);
    require(scale > 0, "lr_scale." + std::string(text), "a number > 0 (optim.freeze keeps parameters as they are)",
            scale);
  }
  const ScheduleConfig& schedule = optim.schedule;
  require(schedule.warmup >= 0, "schedule.warmup", "a number of steps >= 0", static_cast<double>(schedule.warmup));
  for (const auto& [key, share] : {std::pair{"warmup_from", schedule.warmup_from}, std::pair{"final", schedule.final},
                                   std::pair{"decay", schedule.decay}}) {
    require(share >= 0 && share <= 1, std::string("schedule.") + key, "a share in [0, 1]", share);
  }
}

}  // namespace siamese::train
