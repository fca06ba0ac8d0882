#include "siamese/nn/parameters.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include "siamese/base/check.h"
#include "siamese/base/random.h"

namespace siamese::nn {
namespace {

template <class T>
void fill_random(const at::Tensor& value, const Init& init, uint64_t seed, uint64_t stream) {
  T* const data = value.mutable_data_ptr<T>();
  at::parallel_for(0, value.numel(), 4096, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto index = static_cast<uint64_t>(i);
      data[i] = static_cast<T>(init.limit > 0 ? init.limit * (2 * random_uniform(seed, stream, index) - 1)
                                              : init.std * random_normal(seed, stream, index, init.cut));
    }
  });
}

}  // namespace

Parameters::Parameters(uint64_t seed, at::ScalarType dtype, at::Device device)
    : seed_(seed), options_(at::TensorOptions().dtype(dtype).device(device)) {}

const Parameter* Parameters::find(std::string_view name) const {
  for (const auto& parameter : list_) {
    if (parameter.name == name) return &parameter;
  }
  return nullptr;
}

int64_t Parameters::count() const {
  int64_t total = 0;
  for (const auto& parameter : list_) total += parameter.value.numel();
  return total;
}

void Parameters::zero_grad() const {
  for (const auto& parameter : list_) parameter.value.mutable_grad().reset();
}

GradientBuffer::GradientBuffer(const Parameters& parameters) {
  const auto padded = [](const Parameter& parameter) {
    constexpr int64_t kCacheLine = 16;  // floats
    return (parameter.value.numel() + kCacheLine - 1) / kCacheLine * kCacheLine;
  };
  int64_t total = 0;
  for (const auto& parameter : parameters.list()) total += padded(parameter);
  buffer_ = at::zeros({total}, parameters.options());
  int64_t begin = 0;
  for (const auto& parameter : parameters.list()) {
    parameter.value.mutable_grad() = buffer_.narrow(0, begin, parameter.value.numel()).view(parameter.value.sizes());
    begin += padded(parameter);
  }
}

void GradientBuffer::zero() const { buffer_.zero_(); }

Scope Scope::child(std::string_view name) const {
  Scope scope(*parameters_);
  scope.prefix_ = prefix_.empty() ? std::string(name) : prefix_ + "." + std::string(name);
  return scope;
}

at::Tensor Scope::add(std::string_view name, ParameterKind kind, at::IntArrayRef shape, const Init& init) const {
  const std::string full = child(name).prefix_;
  SIAMESE_INVARIANT(parameters_->find(full) == nullptr);
  const at::TensorOptions options = parameters_->options_;
  at::Tensor value;
  if (options.device().is_meta()) {
    value = at::empty(shape, options);
  } else {
    value = at::full(shape, init.constant, options);
  }
  if ((init.std > 0 || init.limit > 0) && !value.is_meta()) {
    if (value.scalar_type() == at::kDouble) {
      fill_random<double>(value, init, parameters_->seed_, hash_text(full));
    } else {
      fill_random<float>(value, init, parameters_->seed_, hash_text(full));
    }
  }
  value.set_requires_grad(true);
  parameters_->list_.push_back({full, kind, value});
  return value;
}

at::Tensor Scope::add_buffer(std::string_view name, const at::Tensor& value) const {
  const std::string full = child(name).prefix_;
  SIAMESE_INVARIANT(parameters_->find(full) == nullptr);
  parameters_->buffers_.push_back({full, value.to(parameters_->options_)});
  return parameters_->buffers_.back().value;
}

void set_initial(const at::Tensor& fresh, const std::function<void(at::Tensor value)>& write) {
  if (fresh.is_meta()) return;
  const c10::NoGradGuard no_grad;
  write(fresh.detach());
}

void scale_rows(const at::Tensor& weight, int64_t begin, int64_t end, double factor) {
  if (factor == 1 || weight.is_meta()) return;
  const c10::NoGradGuard no_grad;
  weight.narrow(0, begin, end - begin).mul_(factor);
}

}  // namespace siamese::nn
