#include "siamese/train/adamw.h"

#include <ATen/ATen.h>

namespace siamese::train {

AdamWMoments::AdamWMoments(const OptimConfig& config)
    : common_{.beta1 = config.beta1, .beta2 = config.beta2, .eps = config.eps} {}

void AdamWMoments::add(const nn::Parameter& parameter, const Piece& piece, const at::Tensor& weights,
                       double weight_decay, double lr_scale) {
  slots_.push_back(
      {parameter, piece, weights, at::zeros_like(weights), at::zeros_like(weights), weight_decay, lr_scale});
}

void AdamWMoments::update(double lr, double clip_scale, int64_t applied_steps) const {
  ops::AdamWArguments arguments = common_;
  arguments.lr = lr;
  arguments.clip_scale = clip_scale;
  arguments.applied_steps = applied_steps;
  std::vector<ops::AdamWTensors> list;
  for (const auto& slot : slots_) {
    const at::Tensor& value = slot.parameter.value;
    const at::Tensor gradient = value.grad().defined() ? slot.piece.of(value.grad()) : at::Tensor();
    list.push_back({gradient, slot.weights, slot.first, slot.second, slot.weight_decay, slot.lr_scale});
  }
  ops::adamw_step(arguments, list);
}

void AdamWMoments::append_state(std::vector<models::NamedTensor>& state) const {
  for (const auto& slot : slots_) {
    const std::string name = piece_name(slot.parameter.name, slot.piece, slot.parameter.value.numel());
    state.push_back({"m." + name, slot.first});
    state.push_back({"v." + name, slot.second});
  }
}

AdamW::AdamW(const OptimConfig& config, const nn::Parameters& parameters, const Division& division,
             const WeightParts* weights)
    : Optimizer(config, parameters, division, weights), moments_(config) {
  for (const auto& [parameter, piece, own, decay, lr_scale] : trained()) {
    moments_.add(parameter, piece, own, decay, lr_scale);
  }
}

void AdamW::update(const Step& step) { moments_.update(step.lr, step.clip_scale, step.applied_steps); }

std::vector<models::NamedTensor> AdamW::state() const {
  std::vector<models::NamedTensor> tensors;
  moments_.append_state(tensors);
  return tensors;
}

}  // namespace siamese::train
