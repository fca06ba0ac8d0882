#include "siamese/train/optimizer.h"

#include <ATen/ATen.h>

#include "siamese/ops/adamw.h"
#include "siamese/ops/reduce.h"
#include "siamese/ops/scope.h"

namespace siamese::train {

AdamW::AdamW(const OptimConfig& config, const nn::Parameters& parameters) : config_(config) {
  for (const auto& parameter : parameters.list()) {
    const at::Tensor value = parameter.value.detach();
    slots_.push_back({parameter, at::zeros_like(value), at::zeros_like(value),
                      config.decay.decays(parameter.kind) ? config.weight_decay : 0});
  }
}

at::Tensor AdamW::squared_gradient_norm() const {
  const ops::PartScope scope("part::optimizer");
  std::vector<at::Tensor> gradients;
  for (const auto& slot : slots_) gradients.push_back(slot.parameter.value.grad());
  return ops::sum_squares_of(gradients);
}

void AdamW::step(double lr, double norm) {
  const ops::PartScope scope("part::optimizer");
  ++applied_steps_;
  const ops::AdamWArguments arguments{.lr = lr,
                                      .beta1 = config_.beta1,
                                      .beta2 = config_.beta2,
                                      .eps = config_.eps,
                                      .clip_scale = config_.clip > 0 && norm > config_.clip ? config_.clip / norm : 1,
                                      .applied_steps = applied_steps_};
  std::vector<ops::AdamWTensors> list;
  for (const auto& slot : slots_) {
    const at::Tensor& value = slot.parameter.value;
    list.push_back({value.grad(), value.detach(), slot.first_moment, slot.second_moment, slot.weight_decay});
  }
  ops::adamw_step(arguments, list);
}

std::vector<models::NamedTensor> AdamW::state() const {
  std::vector<models::NamedTensor> tensors;
  for (const auto& slot : slots_) {
    tensors.push_back({"m." + slot.parameter.name, slot.first_moment});
    tensors.push_back({"v." + slot.parameter.name, slot.second_moment});
  }
  return tensors;
}

}  // namespace siamese::train
