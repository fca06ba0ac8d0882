#include "siamese/ops/operand.h"

#include <atomic>
#include <mutex>
#include <unordered_map>

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

namespace siamese::ops {
namespace operand_detail {

std::atomic<Precision> current{Precision::float32};

// Found by where the weight lies: recomputation sees the same memory through other tensors. The weight is held, so that
// no other can come to lie there.
struct Rounded {
  at::Tensor weight;
  at::Tensor operand;
};

std::mutex guard;
int holders = 0;
std::unordered_map<const void*, Rounded> rounded;

bool same_view(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.strides() == b.strides() && a.scalar_type() == b.scalar_type();
}

}  // namespace operand_detail

void set_precision(Precision precision) { operand_detail::current = precision; }
Precision precision() { return operand_detail::current; }

at::Tensor to_operand(const at::Tensor& x) {
  const bool rounds = precision() == Precision::bfloat16 && x.scalar_type() == at::kFloat;
  return rounds ? x.to(at::kBFloat16) : x;
}

at::Tensor from_operand(const at::Tensor& y) {
  const bool rounded = precision() == Precision::bfloat16 && y.scalar_type() == at::kBFloat16;
  return rounded ? y.to(at::kFloat) : y;
}

RoundWeightsOnce::RoundWeightsOnce() {
  const std::lock_guard lock(operand_detail::guard);
  ++operand_detail::holders;
}

RoundWeightsOnce::~RoundWeightsOnce() {
  const std::lock_guard lock(operand_detail::guard);
  --operand_detail::holders;
  operand_detail::rounded.clear();  // also what others hold: they round again, and never use weights that have changed
}

at::Tensor weight_operand(const at::Tensor& weight, const at::Tensor& activations) {
  using namespace operand_detail;
  if (weight.scalar_type() == activations.scalar_type()) return weight.detach();
  const at::AutoDispatchBelowAutograd below;
  const auto round = [&] { return weight.detach().to(activations.scalar_type()); };
  const std::lock_guard lock(guard);
  if (holders == 0 || !weight.is_cpu()) return round();
  Rounded& held = rounded[weight.const_data_ptr()];
  const bool known = held.weight.defined() && same_view(held.weight, weight) &&
                     held.operand.scalar_type() == activations.scalar_type();
  if (!known) held = {weight.detach(), round()};
  return held.operand;
}

}  // namespace siamese::ops
