#include "siamese/train/weight_parts.h"

#include <algorithm>
#include <span>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "siamese/base/check.h"
#include "siamese/models/parts.h"

namespace siamese::train {
namespace weight_parts_detail {

constexpr int64_t kFloatsOfALine = 16;  // of a cache line, as in nn::GradientBuffer
constexpr int64_t kRoundedOfALine = 32;

std::vector<bool> divided_ones(const nn::Parameters& parameters, bool operands_too) {
  std::vector<bool> divided;
  for (const auto& parameter : parameters.list()) {
    divided.push_back(operands_too && parameter.value.requires_grad() && models::is_operand_alone(parameter));
  }
  return divided;
}

// Numbers of a row in the hands of `exchange`, which sees a span of them on the host.
template <class Exchange>
void exchange_floats(const at::Tensor& row, const Exchange& exchange) {
  const at::Tensor here = row.cpu();  // itself, where it is there already
  const auto count = static_cast<size_t>(here.numel());
  if (here.scalar_type() == at::kDouble) {
    exchange(std::span<double>(here.mutable_data_ptr<double>(), count));
  } else {
    exchange(std::span<float>(here.mutable_data_ptr<float>(), count));
  }
  if (!here.is_same(row)) row.copy_(here);
}

}  // namespace weight_parts_detail

bool divides_operands(const EngineConfig& engine) {
  return engine.precision == ops::Precision::bfloat16 && engine.ops != ops::Mode::plain && engine.device == "cpu";
}

ShorterRow::ShorterRow(const nn::Parameters& parameters, const nn::GradientBuffer& gradients, const Division& division,
                       const std::vector<bool>& chosen, int64_t alignment)
    : begins(chosen.size()) {
  const std::vector<int64_t>& before = gradients.begins();
  const auto elements = [&](size_t i) { return parameters.list()[i].value.numel(); };
  for (size_t i = 0; i < chosen.size(); ++i) {
    begins[i] = size;
    if (chosen[i]) size += (elements(i) + alignment - 1) / alignment * alignment;
  }
  // A cut goes where the next element does that is in both rows.
  const auto moved = [&](int64_t cut) {
    for (size_t i = 0; i < chosen.size(); ++i) {
      if (chosen[i] && cut < before[i] + elements(i)) return begins[i] + std::max<int64_t>(cut - before[i], 0);
    }
    return size;
  };
  for (const std::vector<int64_t>& cuts : division.parts()) {
    std::vector<int64_t>& shorter = parts.emplace_back();
    for (const int64_t cut : cuts) shorter.push_back(moved(cut));
  }
}

WeightParts::WeightParts(comm::Group& group, const nn::Parameters& parameters, const nn::GradientBuffer& gradients,
                         const Division& division, bool operands_too)
    : group_(group),
      parameters_(parameters),
      gradients_(gradients),
      division_(division),
      divided_(weight_parts_detail::divided_ones(parameters, operands_too)),
      operands_(parameters, gradients, division, divided_, weight_parts_detail::kRoundedOfALine),
      floats_(parameters, gradients, division, others(), weight_parts_detail::kFloatsOfALine),
      own_(divided_.size()) {
  const c10::NoGradGuard no_grad;
  if (operands_.size > 0) rounded_ = at::zeros({operands_.size}, at::kBFloat16);
  for (size_t i = 0; i < divided_.size(); ++i) {
    if (!divided_[i]) continue;
    const nn::Parameter& parameter = parameters_.list()[i];
    own_[i] = piece_of(i).of(parameter.value.detach()).clone();
    rounded_of(i).copy_(parameter.value);
    released_.emplace_back(parameter.name, parameter.value, rounded_of(i));
  }
}

std::vector<bool> WeightParts::others() const {
  std::vector<bool> others;
  for (size_t i = 0; i < divided_.size(); ++i) {
    others.push_back(!divided_[i] && parameters_.list()[i].value.requires_grad());
  }
  return others;
}

Piece WeightParts::piece_of(size_t parameter) const {
  return division_.piece_of(parameter, parameters_.list()[parameter].value.numel());
}

at::Tensor WeightParts::place_of(size_t parameter) const {
  const at::Tensor& value = parameters_.list()[parameter].value;
  return gradients_.whole().narrow(0, gradients_.begins()[parameter], value.numel()).view(value.sizes());
}

at::Tensor WeightParts::rounded_of(size_t parameter) const {
  const at::Tensor& value = parameters_.list()[parameter].value;
  return rounded_.narrow(0, operands_.begins[parameter], value.numel()).view(value.sizes());
}

at::Tensor WeightParts::own(size_t parameter) const {
  return divided_[parameter] ? own_[parameter] : piece_of(parameter).of(parameters_.list()[parameter].value.detach());
}

void WeightParts::share() const {
  share_floats();
  if (any_is_divided()) share_rounded(own_);
}

// The gradients have been used: their buffer carries the weights.
void WeightParts::share_floats() const {
  const at::Tensor row = gradients_.whole().narrow(0, 0, floats_.size);
  const std::vector<bool> sent = others();
  for (size_t i = 0; i < sent.size(); ++i) {
    if (!sent[i]) continue;
    const Piece mine = piece_of(i);
    row.narrow(0, floats_.begins[i] + mine.begin, mine.size()).copy_(own(i).view({-1}));
  }
  weight_parts_detail::exchange_floats(row, [&](auto numbers) {
    for (const std::vector<int64_t>& cuts : floats_.parts) comm::share_own(group_, numbers, cuts);
  });
  for (size_t i = 0; i < sent.size(); ++i) {
    if (!sent[i]) continue;
    const at::Tensor value = parameters_.list()[i].value.detach().view({-1});
    value.copy_(row.narrow(0, floats_.begins[i], value.numel()));
  }
}

void WeightParts::share_rounded(const Parts& parts) const {
  for (size_t i = 0; i < divided_.size(); ++i) {
    if (!divided_[i]) continue;
    const Piece mine = piece_of(i);
    rounded_.narrow(0, operands_.begins[i] + mine.begin, mine.size()).copy_(parts[i].view({-1}));
  }
  const std::span<uint16_t> bits(reinterpret_cast<uint16_t*>(rounded_.mutable_data_ptr<at::BFloat16>()),
                                 static_cast<size_t>(rounded_.numel()));
  for (const std::vector<int64_t>& cuts : operands_.parts) comm::share_own(group_, bits, cuts);
}

std::vector<models::NamedTensor> WeightParts::in_places(std::vector<models::NamedTensor> tensors) const {
  SIAMESE_INVARIANT(tensors.size() >= divided_.size());
  for (size_t i = 0; i < divided_.size(); ++i) {
    if (divided_[i]) tensors[i].value = place_of(i);
  }
  return tensors;
}

void WeightParts::gather(const Parts& parts) const {
  for (size_t i = 0; i < divided_.size(); ++i) {
    if (divided_[i]) piece_of(i).of(place_of(i)).copy_(parts[i]);
  }
  weight_parts_detail::exchange_floats(gradients_.whole(), [&](auto numbers) {
    for (const std::vector<int64_t>& cuts : division_.parts()) comm::share_own(group_, numbers, cuts);
  });
}

void WeightParts::keep(const Parts& parts) const {
  for (size_t i = 0; i < divided_.size(); ++i) {
    if (divided_[i]) parts[i].copy_(piece_of(i).of(place_of(i)));
  }
}

void WeightParts::take_weights() const {
  keep(own_);
  for (size_t i = 0; i < divided_.size(); ++i) {
    if (divided_[i]) rounded_of(i).copy_(place_of(i));
  }
}

}  // namespace siamese::train
