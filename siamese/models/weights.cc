#include "siamese/models/weights.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <set>
#include <span>
#include <sstream>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "siamese/base/check.h"
#include "siamese/base/join.h"
#include "siamese/models/registry.h"

namespace siamese::models {
namespace {

constexpr std::array<std::pair<io::DType, at::ScalarType>, 13> kTypes{{{io::DType::boolean, at::kBool},
                                                                       {io::DType::u8, at::kByte},
                                                                       {io::DType::i8, at::kChar},
                                                                       {io::DType::i16, at::kShort},
                                                                       {io::DType::u16, at::kUInt16},
                                                                       {io::DType::f16, at::kHalf},
                                                                       {io::DType::bf16, at::kBFloat16},
                                                                       {io::DType::i32, at::kInt},
                                                                       {io::DType::u32, at::kUInt32},
                                                                       {io::DType::f32, at::kFloat},
                                                                       {io::DType::f64, at::kDouble},
                                                                       {io::DType::i64, at::kLong},
                                                                       {io::DType::u64, at::kUInt64}}};

io::DType stored_type(const at::Tensor& tensor) {
  for (const auto& [stored, type] : kTypes) {
    if (type == tensor.scalar_type()) return stored;
  }
  throw UsageError("a tensor of weights: expected a type that safetensors can hold, got " +
                   std::string(c10::toString(tensor.scalar_type())));
}

std::string shape_text(io::DType dtype, at::IntArrayRef shape) {
  std::stringstream text;
  text << enum_text(dtype) << " " << shape;
  return text.str();
}

bool is_aligned(const std::byte* data, io::DType dtype) {
  return reinterpret_cast<uintptr_t>(data) % io::dtype_size(dtype) == 0;
}

// Some elements of a stored tensor. Files of other writers may be unaligned; then there is no tensor over them, only a
// copy.
at::Tensor elements(std::span<const std::byte> block, io::DType dtype) {
  const auto options = at::TensorOptions().dtype(tensor_type(dtype));
  const auto count = static_cast<int64_t>(block.size() / io::dtype_size(dtype));
  if (is_aligned(block.data(), dtype)) return at::from_blob(const_cast<std::byte*>(block.data()), {count}, options);
  const at::Tensor copy = at::empty({count}, options);
  std::memcpy(copy.mutable_data_ptr(), block.data(), block.size());
  return copy;
}

// Verified on the way: each block is hashed, then copied from the cache.
void read_into(const io::TensorView& view, const at::Tensor& value) {
  const bool is_plain = value.is_contiguous() && value.device().is_cpu();
  const at::Tensor target = is_plain ? value : at::empty(value.sizes(), value.options().device(at::kCPU));
  const at::Tensor flat = target.view({-1});
  const bool same_type = tensor_type(view.dtype) == value.scalar_type();
  io::read_tensor(view, [&](size_t offset, std::span<const std::byte> block) {
    if (same_type) {
      std::memcpy(static_cast<std::byte*>(flat.mutable_data_ptr()) + offset, block.data(), block.size());
      return;
    }
    const auto first = static_cast<int64_t>(offset / io::dtype_size(view.dtype));
    const at::Tensor given = elements(block, view.dtype);
    flat.narrow(0, first, given.numel()).copy_(given);
  });
  if (!is_plain) value.copy_(target);
}

bool converts(io::DType stored, const at::Tensor& value) {
  return stored_type(value) == stored || (value.is_floating_point() && at::isFloatingType(tensor_type(stored)));
}

}  // namespace

at::ScalarType tensor_type(io::DType stored) {
  for (const auto& [dtype, type] : kTypes) {
    if (dtype == stored) return type;
  }
  throw DataError("a tensor of weights: expected a type that LibTorch holds, got " + std::string(enum_text(stored)));
}

at::Tensor as_tensor(const io::TensorView& view) {
  const auto options = at::TensorOptions().dtype(tensor_type(view.dtype));
  if (!is_aligned(view.data, view.dtype)) {
    const at::Tensor copy = at::empty(view.shape, options);
    read_into(view, copy);
    return copy;
  }
  io::verify(view);
  return at::from_blob(const_cast<std::byte*>(view.data), view.shape, options);
}

io::TensorView as_view(const std::string& name, const at::Tensor& tensor) {
  if (!tensor.is_contiguous() || !tensor.device().is_cpu()) {
    throw UsageError(name + ": expected a contiguous tensor on the CPU, got " +
                     (tensor.is_contiguous() ? "one on " + tensor.device().str() : "a strided one"));
  }
  return {name, stored_type(tensor), tensor.sizes().vec(), static_cast<const std::byte*>(tensor.const_data_ptr()),
          tensor.nbytes()};
}

void save_tensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                  const std::map<std::string, std::string>& metadata) {
  std::vector<at::Tensor> held;
  std::vector<io::TensorView> views;
  for (const auto& tensor : tensors) {
    const at::Tensor& dense = held.emplace_back(tensor.value.detach().cpu().contiguous());
    views.push_back(as_view(tensor.name, dense));
  }
  io::write_safetensors(path, views, metadata);
}

void load_tensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors) {
  load_tensors(io::TensorFiles::open(path), tensors);
}

void load_tensors(const io::TensorFiles& files, const std::vector<NamedTensor>& tensors) {
  std::vector<std::string> problems;
  std::set<std::string> wanted;
  for (const auto& [name, value, optional] : tensors) {
    wanted.insert(name);
    const io::TensorView* const view = files.find(name);
    if (view == nullptr) {
      if (!optional) problems.push_back("missing " + name);
    } else if (!converts(view->dtype, value) || value.sizes() != view->shape) {
      problems.push_back(name + ": expected " + shape_text(stored_type(value), value.sizes()) + ", got " +
                         shape_text(view->dtype, view->shape));
    }
  }
  for (const auto& view : files.tensors()) {
    if (!wanted.contains(view.name)) problems.push_back("unknown " + view.name);
  }
  if (!problems.empty()) {
    throw DataError(files.path().string() + ": does not fit the model: " + join(problems, "; "));
  }
  const c10::NoGradGuard no_grad;
  for (const auto& tensor : tensors) {
    if (const io::TensorView* const view = files.find(tensor.name)) read_into(*view, tensor.value.detach());
  }
}

std::vector<NamedTensor> named_values(const nn::Parameters& parameters) {
  std::vector<NamedTensor> tensors;
  for (const auto& parameter : parameters.list()) tensors.push_back({parameter.name, parameter.value});
  for (const auto& buffer : parameters.buffers()) tensors.push_back({buffer.name, buffer.value, true});
  return tensors;
}

std::vector<NamedTensor> tensor_list(const ModelConfig& config) {
  return named_values(make_model(config, {}, 0, at::kMeta)->parameters());
}

}  // namespace siamese::models
