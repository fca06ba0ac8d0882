// A tensor of a model by reference. A part holds the slot of its weight and asks for the value at every call, because
// whoever owns the weights may replace them: module.to, deepcopy and FSDP put other tensors in their place.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace siamese::nn {

struct ParameterStore;

// Cheap to copy; keeps what it refers to alive. One that was never given a place is undefined.
class Slot {
 public:
  Slot() = default;

  bool defined() const { return store_ != nullptr; }
  // The tensor now; an undefined one for an undefined slot. Valid until the slot's tensor is replaced.
  const at::Tensor& value() const;
  // Whether the value was made here and may still be written to: not given from outside, not on the meta device.
  bool is_fresh() const;

 private:
  friend class Parameters;
  friend class Scope;
  Slot(std::shared_ptr<const ParameterStore> store, size_t index, bool buffer)
      : store_(std::move(store)), index_(index), buffer_(buffer) {}

  std::shared_ptr<const ParameterStore> store_;
  size_t index_ = 0;
  bool buffer_ = false;
};

class Parameters;

// While it lives, and on this thread alone, the slots of `parameters` give these tensors instead, in the order of
// parameters.list(); buffers stay. Guards nest, of the same and of different Parameters; each is destroyed on the
// thread that made it. UsageError naming the parameter whose tensor is missing or has another shape.
class ParameterGuard {
 public:
  ParameterGuard(const Parameters& parameters, std::vector<at::Tensor> values);
  ~ParameterGuard();
  ParameterGuard(const ParameterGuard&) = delete;
  ParameterGuard& operator=(const ParameterGuard&) = delete;

 private:
  friend class Slot;
  std::shared_ptr<const ParameterStore> store_;
  std::vector<at::Tensor> values_;
  const ParameterGuard* outer_;
};

}  // namespace siamese::nn
