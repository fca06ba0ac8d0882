#include "siamese/train/average.h"

#include <ATen/ATen.h>

#include "siamese/base/check.h"
#include "siamese/ops/scope.h"

namespace siamese::train {

WeightAverage::WeightAverage(double decay, const nn::Parameters& parameters) : decay_(decay) {
  if (!kept()) return;
  parameters_ = parameters.list();
  for (const auto& parameter : parameters_) averages_.push_back(parameter.value.detach().clone());
}

void WeightAverage::update() {
  const ops::PartScope scope("part::optimizer");
  for (size_t i = 0; i < averages_.size(); ++i) averages_[i].lerp_(parameters_[i].value.detach(), 1 - decay_);
}

std::vector<models::NamedTensor> WeightAverage::state() const {
  std::vector<models::NamedTensor> tensors;
  for (size_t i = 0; i < averages_.size(); ++i) tensors.push_back({parameters_[i].name, averages_[i]});
  return tensors;
}

void WeightAverage::exchange() const {
  for (size_t i = 0; i < averages_.size(); ++i) {
    const at::Tensor value = parameters_[i].value.detach();
    const at::Tensor held = value.clone();
    value.copy_(averages_[i]);
    averages_[i].copy_(held);
  }
}

WeightAverage::InUse::InUse(const WeightAverage& average) : average_(average) { average_.exchange(); }

WeightAverage::InUse::~InUse() { average_.exchange(); }

}  // namespace siamese::train
