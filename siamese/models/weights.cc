#include "siamese/models/weights.h"

#include <cstring>
#include <set>
#include <sstream>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "siamese/base/check.h"
#include "siamese/base/nearest.h"
#include "siamese/io/safetensors.h"

namespace siamese::models {
namespace {

io::DType stored_type(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return io::DType::f32;
    case at::kDouble:
      return io::DType::f64;
    case at::kLong:
      return io::DType::i64;
    default:
      break;
  }
  SIAMESE_INVARIANT(!"a dtype that is never stored");
  return io::DType::f32;
}

std::string shape_text(const std::string& dtype, at::IntArrayRef shape) {
  std::stringstream text;
  text << dtype << " " << shape;
  return text.str();
}

}  // namespace

void save_tensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                  const std::map<std::string, std::string>& metadata) {
  std::vector<at::Tensor> held;
  std::vector<io::TensorView> views;
  for (const auto& [name, value] : tensors) {
    const at::Tensor& dense = held.emplace_back(value.detach().cpu().contiguous());
    views.push_back({name, stored_type(dense), dense.sizes().vec(),
                     static_cast<const std::byte*>(dense.const_data_ptr()), dense.nbytes()});
  }
  io::write_safetensors(path, views, metadata);
}

void load_tensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors) {
  const auto file = io::SafetensorsFile::open(path);
  std::vector<std::string> problems;
  std::set<std::string> wanted;
  for (const auto& [name, value] : tensors) {
    wanted.insert(name);
    const io::TensorView* const view = file.find(name);
    if (view == nullptr) {
      problems.push_back("missing " + name);
      continue;
    }
    const std::string expected = shape_text(std::string(enum_text(stored_type(value))), value.sizes());
    const std::string got = shape_text(std::string(enum_text(view->dtype)), view->shape);
    if (expected != got) problems.push_back(name + ": expected " + expected + ", got " + got);
  }
  for (const auto& view : file.tensors()) {
    if (!wanted.contains(view.name)) problems.push_back("unknown " + view.name);
  }
  if (!problems.empty()) throw DataError(path.string() + ": does not fit the model: " + join(problems, "; "));
  const c10::NoGradGuard no_grad;
  for (const auto& [name, value] : tensors) {
    const io::TensorView* const view = file.find(name);
    const at::Tensor stored = at::empty(value.sizes(), value.options().device(at::kCPU));
    std::memcpy(stored.mutable_data_ptr(), view->data, view->bytes);
    value.copy_(stored);
  }
}

std::vector<NamedTensor> named_values(const nn::Parameters& parameters) {
  std::vector<NamedTensor> tensors;
  for (const auto& parameter : parameters.list()) tensors.push_back({parameter.name, parameter.value});
  return tensors;
}

}  // namespace siamese::models
