#include "siamese/nn/parameters.h"

#include <algorithm>
#include <sstream>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include "siamese/base/check.h"
#include "siamese/base/join.h"
#include "siamese/base/nearest.h"
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

// Random values are made on the host, in float or double, and moved where they belong.
at::Tensor fresh_value(const ParameterStore& store, const std::string& name, at::IntArrayRef shape, const Init& init) {
  if (store.options.device().is_meta()) return at::empty(shape, store.options);
  if (init.std <= 0 && init.limit <= 0) return at::full(shape, init.constant, store.options);
  if (store.options.dtype() == at::kDouble) {
    const at::Tensor host = at::empty(shape, at::kDouble);
    fill_random<double>(host, init, store.seed, hash_text(name));
    return host.to(store.options);
  }
  const at::Tensor host = at::empty(shape, at::kFloat);
  fill_random<float>(host, init, store.seed, hash_text(name));
  return host.to(store.options);
}

std::string shape_text(at::IntArrayRef shape) {
  std::stringstream text;
  text << shape;
  return text.str();
}

// The tensor given for `name`, if there is one.
at::Tensor take_given(ParameterStore& store, const std::string& name) {
  const auto found = store.given.find(name);
  if (found == store.given.end()) return {};
  const at::Tensor value = found->second;
  store.given.erase(found);
  return value;
}

void check_shape(const std::string& name, at::IntArrayRef shape, const at::Tensor& got) {
  const auto refuse = [&](const std::string& what) {
    throw UsageError(name + ": expected a floating-point tensor of shape " + shape_text(shape) + ", got " + what);
  };
  if (!got.defined()) refuse("an undefined one");
  if (got.sym_sizes() != c10::fromIntArrayRefSlow(shape)) {
    std::stringstream sizes;
    sizes << got.sym_sizes();
    refuse(sizes.str());
  }
  if (!got.is_floating_point()) refuse(std::string(c10::toString(got.scalar_type())));
}

void check_name_is_free(const ParameterStore& store, const std::string& name) {
  const auto has_name = [&](const auto& one) { return one.name == name; };
  if (std::any_of(store.list.begin(), store.list.end(), has_name) ||
      std::any_of(store.buffers.begin(), store.buffers.end(), has_name)) {
    throw UsageError("parameter " + name + ": expected a name that is free, got one that exists already");
  }
}

}  // namespace

void check_fits(const std::string& name, const at::Tensor& held, const at::Tensor& got) {
  check_shape("parameter " + name, held.sizes(), got);
}

Parameters::Parameters(uint64_t seed, at::ScalarType dtype, at::Device device)
    : store_(std::make_shared<ParameterStore>()) {
  store_->seed = seed;
  store_->options = at::TensorOptions().dtype(dtype).device(device);
}

Parameters::Parameters(std::map<std::string, at::Tensor> given) : Parameters(0) {
  for (const auto& [name, value] : given) {
    if (!value.defined()) throw UsageError("parameter " + name + ": expected a tensor, got an undefined one");
  }
  if (!given.empty()) {
    const at::Tensor& first = given.begin()->second;
    store_->options = at::TensorOptions().dtype(first.dtype()).device(first.device());
  }
  store_->from_outside = true;
  store_->given = std::move(given);
}

void Parameters::expect_all_used() const {
  if (store_->given.empty()) return;
  std::vector<std::string> names;
  for (const auto& [name, value] : store_->given) names.push_back(name);
  throw UsageError("parameters: expected only what the model has, got also " + join(names));
}

const Parameter* Parameters::find(std::string_view name) const {
  for (const auto& parameter : store_->list) {
    if (parameter.name == name) return &parameter;
  }
  return nullptr;
}

int64_t Parameters::count() const {
  int64_t total = 0;
  for (const auto& parameter : store_->list) total += parameter.value.numel();
  return total;
}

at::TensorOptions Parameters::options() const {
  if (store_->list.empty()) return store_->options;
  const at::Tensor& first = Slot(store_, 0, /*buffer=*/false).value();
  return at::TensorOptions().dtype(first.dtype()).device(first.device());
}

std::vector<at::Tensor> Parameters::values() const {
  std::vector<at::Tensor> values;
  for (size_t i = 0; i < store_->list.size(); ++i) values.push_back(Slot(store_, i, /*buffer=*/false).value());
  return values;
}

void Parameters::zero_grad() const {
  for (const auto& parameter : store_->list) parameter.value.mutable_grad().reset();
}

void Parameters::set(std::string_view name, const at::Tensor& value) const {
  const auto replace_in = [&](auto& list) {
    for (auto& one : list) {
      if (one.name != name) continue;
      check_fits(one.name, one.value, value);
      one.value = value;
      return true;
    }
    return false;
  };
  if (replace_in(store_->list) || replace_in(store_->buffers)) return;
  std::vector<std::string> names;
  for (const auto& parameter : store_->list) names.push_back(parameter.name);
  throw UsageError("parameter " + std::string(name) + ": expected the name of a parameter or buffer" +
                   did_you_mean(std::string(name), names));
}

GradientBuffer::GradientBuffer(const Parameters& parameters) : parameters_(parameters) {
  const auto padded = [](const Parameter& parameter) {
    constexpr int64_t kCacheLine = 16;  // floats
    if (!parameter.value.requires_grad()) return int64_t{0};
    return (parameter.value.numel() + kCacheLine - 1) / kCacheLine * kCacheLine;
  };
  int64_t total = 0;
  for (const auto& parameter : parameters.list()) total += padded(parameter);
  buffer_ = at::zeros({total}, parameters.options());
  for (const auto& parameter : parameters.list()) expect_type_of_buffer(parameter);
  int64_t begin = 0;
  for (const auto& parameter : parameters.list()) {
    begins_.push_back(begin);
    if (!parameter.value.requires_grad()) {
      views_.emplace_back();
      continue;
    }
    views_.push_back(buffer_.narrow(0, begin, parameter.value.numel()).view(parameter.value.sizes()));
    parameter.value.mutable_grad() = views_.back();
    begin += padded(parameter);
  }
}

void GradientBuffer::expect_type_of_buffer(const Parameter& parameter) const {
  const auto text = [](const at::Tensor& tensor) { return c10::str(tensor.scalar_type(), " on ", tensor.device()); };
  if (text(parameter.value) == text(buffer_)) return;
  throw UsageError("gradient buffer: parameter " + parameter.name + ": expected " + text(buffer_) +
                   ", the type and device of all gradients, got " + text(parameter.value));
}

void GradientBuffer::zero() const {
  buffer_.zero_();
  for (size_t i = 0; i < views_.size(); ++i) {
    const Parameter& parameter = parameters_.list()[i];
    if (!views_[i].defined() || parameter.value.grad().is_same(views_[i])) continue;
    expect_type_of_buffer(parameter);
    parameter.value.mutable_grad() = views_[i];
  }
}

Scope Scope::child(std::string_view name) const {
  Scope scope = *this;
  scope.prefix_ = prefix_.empty() ? std::string(name) : prefix_ + "." + std::string(name);
  return scope;
}

Slot Scope::add(std::string_view name, ParameterKind kind, at::IntArrayRef shape, const Init& init,
                std::vector<int64_t> matrices) const {
  const std::string full = child(name).prefix_;
  check_name_is_free(*store_, full);
  at::Tensor value;
  if (store_->from_outside) {
    value = take_given(*store_, full);
    check_shape("parameter " + full, shape, value);
  } else {
    value = fresh_value(*store_, full, shape, init);
    value.set_requires_grad(true);
  }
  store_->list.push_back({full, kind, value, std::move(matrices)});
  return {store_, store_->list.size() - 1, /*buffer=*/false};
}

Slot Scope::add_buffer(std::string_view name, const at::Tensor& value) const {
  const std::string full = child(name).prefix_;
  check_name_is_free(*store_, full);
  at::Tensor kept = take_given(*store_, full);
  if (kept.defined()) {
    check_shape("buffer " + full, value.sizes(), kept);
  } else {
    kept = value.to(store_->options);
  }
  store_->buffers.push_back({full, kept});
  return {store_, store_->buffers.size() - 1, /*buffer=*/true};
}

void set_initial(const Slot& slot, const std::function<void(at::Tensor value)>& write) {
  if (!slot.is_fresh()) return;
  const c10::NoGradGuard no_grad;
  write(slot.value().detach());
}

void scale_rows(const Slot& weight, int64_t begin, int64_t end, double factor) {
  if (factor == 1 || !weight.is_fresh()) return;
  const c10::NoGradGuard no_grad;
  weight.value().narrow(0, begin, end - begin).mul_(factor);
}

}  // namespace siamese::nn
