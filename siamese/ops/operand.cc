#include "siamese/ops/operand.h"

#include <atomic>
#include <mutex>
#include <unordered_map>

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include "siamese/base/check.h"
#include "siamese/ops/released_weight.h"

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
// Of weights without memory, by their storage, which every tensor over them shares.
std::unordered_map<const c10::StorageImpl*, at::Tensor> released;

const c10::StorageImpl* storage_of(const at::Tensor& tensor) { return tensor.storage().unsafeGetStorageImpl(); }

bool same_shape(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.strides() == b.strides();
}
bool is_type_of(const at::Tensor& a, const at::Tensor& b) { return a.scalar_type() == b.scalar_type(); }
bool same_view(const at::Tensor& a, const at::Tensor& b) { return same_shape(a, b) && is_type_of(a, b); }

}  // namespace operand_detail

void set_precision(Precision precision) { operand_detail::current = precision; }
Precision precision() { return operand_detail::current; }

bool rounds_operand(const at::Tensor& x) { return precision() == Precision::bfloat16 && x.scalar_type() == at::kFloat; }

at::Tensor to_operand(const at::Tensor& x) { return rounds_operand(x) ? x.to(at::kBFloat16) : x; }

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

ReleasedWeight::ReleasedWeight(const std::string& name, const at::Tensor& weight, const at::Tensor& rounded)
    : weight_(weight.detach()) {
  using namespace operand_detail;
  const bool fits = weight.is_cpu() && weight.scalar_type() == at::kFloat && weight.is_contiguous() &&
                    weight.storage_offset() == 0 && weight.storage().nbytes() == weight.nbytes();
  if (!fits) throw UsageError(name + ": expected a dense float32 weight on the CPU with memory of its own");
  if (rounded.scalar_type() != at::kBFloat16 || !same_shape(rounded, weight)) {
    throw UsageError(name + ": expected a rounded copy of its shape in bfloat16");
  }
  c10::StorageImpl* const storage = weight_.storage().unsafeGetStorageImpl();
  storage->reset();
  storage->release_data_and_set_meta_custom_data_ptr_error_msg_(
      name + ": its float32 numbers are divided among the ranks, and only the rounded copy is here");
  const std::lock_guard lock(guard);
  released[storage] = rounded;
}

ReleasedWeight::ReleasedWeight(ReleasedWeight&& other) noexcept : weight_(std::move(other.weight_)) {}

ReleasedWeight::~ReleasedWeight() {
  using namespace operand_detail;
  if (!weight_.defined()) return;
  const std::lock_guard lock(guard);
  released.erase(storage_of(weight_));
}

at::Tensor weight_operand(const at::Tensor& weight, const at::Tensor& activations) {
  using namespace operand_detail;
  if (weight.scalar_type() == activations.scalar_type()) return weight.detach();
  const at::AutoDispatchBelowAutograd below;
  const auto round = [&] { return weight.detach().to(activations.scalar_type()); };
  const std::lock_guard lock(guard);
  if (!released.empty() && weight.is_cpu()) {
    const auto found = released.find(storage_of(weight));
    if (found != released.end() && same_shape(found->second, weight) && is_type_of(found->second, activations)) {
      return found->second;
    }
  }
  if (holders == 0 || !weight.is_cpu()) return round();
  Rounded& held = rounded[weight.const_data_ptr()];
  const bool known = held.weight.defined() && same_view(held.weight, weight) && is_type_of(held.operand, activations);
  if (!known) held = {weight.detach(), round()};
  return held.operand;
}

}  // namespace siamese::ops
