#include "siamese/train/muon.h"

#include <ATen/ATen.h>

#include "siamese/base/check.h"

namespace siamese::train {

Muon::Muon(const OptimConfig& config, const nn::Parameters& parameters, const Division& division,
           const WeightParts* weights)
    : Optimizer(config, parameters, division, weights), config_(config.muon), rest_(config) {
  for (const auto& [parameter, piece, own, weight_decay, lr_scale] : trained()) {
    if (parameter.matrices.empty()) {
      rest_.add(parameter, piece, own, weight_decay, lr_scale);
    } else {
      SIAMESE_INVARIANT(piece.is_whole(parameter.value));
      matrices_.push_back({parameter, own, at::zeros_like(own), weight_decay, lr_scale * config.muon.lr_scale});
    }
  }
}

void Muon::update(const Step& step) {
  std::vector<ops::MuonTensors> list;
  for (const auto& slot : matrices_) {
    list.push_back({slot.parameter.value.grad(), slot.weights, slot.momentum, slot.parameter.matrices,
                    slot.weight_decay, slot.lr_scale});
  }
  ops::muon_step({.lr = step.lr, .momentum = config_.momentum, .clip_scale = step.clip_scale, .scale = config_.scale},
                 list);
  rest_.update(step.lr, step.clip_scale, step.applied_steps);
}

std::vector<models::NamedTensor> Muon::state() const {
  std::vector<models::NamedTensor> tensors;
  for (const auto& slot : matrices_) tensors.push_back({"m." + slot.parameter.name, slot.momentum});
  rest_.append_state(tensors);
  return tensors;
}

double Muon::flops(const nn::Parameter& parameter) {
  double flops = 0;
  const double experts = parameter.value.dim() == 3 ? static_cast<double>(parameter.value.size(0)) : 1;
  for (const int64_t rows : parameter.matrices) {
    flops += experts * ops::newton_schulz_flops(rows, parameter.value.size(-1));
  }
  return flops;
}

}  // namespace siamese::train
