#include "siamese/nn/slot.h"

#include "siamese/base/check.h"
#include "siamese/nn/parameters.h"

namespace siamese::nn {
namespace slot_detail {

thread_local const ParameterGuard* innermost = nullptr;

}  // namespace slot_detail

const at::Tensor& Slot::value() const {
  static const at::Tensor undefined;
  if (store_ == nullptr) return undefined;
  if (buffer_) return store_->buffers[index_].value;
  for (const auto* guard = slot_detail::innermost; guard != nullptr; guard = guard->outer_) {
    if (guard->store_ == store_ && index_ < guard->values_.size()) return guard->values_[index_];
  }
  return store_->list[index_].value;
}

bool Slot::is_fresh() const { return store_ != nullptr && !store_->from_outside && !value().is_meta(); }

ParameterGuard::ParameterGuard(const Parameters& parameters, std::vector<at::Tensor> values)
    : store_(parameters.store_), values_(std::move(values)), outer_(slot_detail::innermost) {
  const auto& list = store_->list;
  if (values_.size() != list.size()) {
    const std::string missing = values_.size() < list.size() ? ", missing " + list[values_.size()].name : "";
    throw UsageError("parameters: expected " + std::to_string(list.size()) + " tensors, got " +
                     std::to_string(values_.size()) + missing);
  }
  for (size_t i = 0; i < list.size(); ++i) check_fits(list[i].name, list[i].value, values_[i]);
  slot_detail::innermost = this;
}

ParameterGuard::~ParameterGuard() { slot_detail::innermost = outer_; }

}  // namespace siamese::nn
