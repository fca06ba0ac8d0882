#include "siamese/train/average.h"

#include <ATen/ATen.h>

#include "siamese/base/check.h"
#include "siamese/ops/scope.h"

namespace siamese::train {

WeightAverage::WeightAverage(double decay, const nn::Parameters& parameters, const WeightParts* weights)
    : decay_(decay), weights_(weights) {
  if (!kept()) return;
  parameters_ = parameters.list();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const bool divided = weights_ != nullptr && weights_->is_divided(i);
    numbers_.push_back(divided ? weights_->own(i) : parameters_[i].value.detach());
    averages_.push_back(numbers_.back().clone());
  }
}

void WeightAverage::update() {
  const ops::PartScope scope("part::optimizer");
  for (size_t i = 0; i < averages_.size(); ++i) averages_[i].lerp_(numbers_[i], 1 - decay_);
}

std::vector<models::NamedTensor> WeightAverage::state() const {
  std::vector<models::NamedTensor> tensors;
  for (size_t i = 0; i < averages_.size(); ++i) tensors.push_back({parameters_[i].name, averages_[i]});
  return tensors;
}

void WeightAverage::exchange() const {
  for (size_t i = 0; i < averages_.size(); ++i) {
    if (divides() && weights_->is_divided(i)) continue;
    const at::Tensor& value = numbers_[i];
    const at::Tensor held = value.clone();
    value.copy_(averages_[i]);
    averages_[i].copy_(held);
  }
}

// What passes read of the weights is kept meanwhile: who is done with the averages waits for no other rank.
WeightAverage::InUse::InUse(const WeightAverage& average) : average_(average) {
  average_.exchange();
  if (!average_.divides()) return;
  rounded_ = average_.weights_->rounded().clone();
  average_.weights_->share_rounded(average_.averages_);
}

WeightAverage::InUse::~InUse() {
  average_.exchange();
  if (rounded_.defined()) average_.weights_->rounded().copy_(rounded_);
}

}  // namespace siamese::train
