#include "siamese/ops/arguments.h"

#include <algorithm>
#include <sstream>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "siamese/base/check.h"
#include "siamese/ops/wide.h"

namespace siamese::ops {
namespace arguments_detail {

template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

}  // namespace arguments_detail

using arguments_detail::text;

std::string shape_text(c10::SymIntArrayRef sizes) { return text(sizes); }

Arguments::Arguments(const char* op, const char* first_name, const at::Tensor& first)
    : op_(op), first_name_(first_name), first_(first) {
  if (!first.defined()) refuse(first_name, "a tensor", "none");
  if (!first.is_floating_point()) refuse(first_name, "a floating-point type", text(first.scalar_type()));
}

const Arguments& Arguments::rank(const char* name, const at::Tensor& tensor, int64_t rank) const {
  if (tensor.defined() && tensor.dim() != rank) {
    refuse(name, text(rank, rank == 1 ? " dimension" : " dimensions"), "shape " + shape_text(tensor.sym_sizes()));
  }
  return *this;
}

const Arguments& Arguments::least_rank(const char* name, const at::Tensor& tensor, int64_t rank) const {
  if (tensor.defined() && tensor.dim() < rank) {
    refuse(name, text("at least ", rank, rank == 1 ? " dimension" : " dimensions"),
           "shape " + shape_text(tensor.sym_sizes()));
  }
  return *this;
}

void Arguments::check_sizes(const char* name, const at::Tensor& tensor, c10::SymIntArrayRef sizes) const {
  const auto got = tensor.sym_sizes();
  if (!std::equal(got.begin(), got.end(), sizes.begin(), sizes.end())) {
    refuse(name, "shape " + shape_text(sizes), shape_text(got));
  }
}

void Arguments::check_type(const char* name, const at::Tensor& tensor, at::ScalarType type) const {
  if (tensor.scalar_type() != type) {
    const char* const why = type == first_.scalar_type() ? ", the type of " : ", for sums of ";
    refuse(name, text(type, why, first_name_), text(tensor.scalar_type()));
  }
  if (tensor.device() != first_.device()) {
    refuse(name, text(first_.device(), ", where ", first_name_, " is"), text(tensor.device()));
  }
}

const Arguments& Arguments::shape(const char* name, const at::Tensor& tensor, c10::SymIntArrayRef sizes) const {
  if (!tensor.defined()) return *this;
  check_sizes(name, tensor, sizes);
  return same_type(name, tensor);
}

const Arguments& Arguments::shape_or_half(const char* name, const at::Tensor& tensor, c10::SymIntArrayRef sizes) const {
  if (!tensor.defined() || tensor.scalar_type() != at::kBFloat16) return shape(name, tensor, sizes);
  check_sizes(name, tensor, sizes);
  check_type(name, tensor, at::kBFloat16);
  return *this;
}

const Arguments& Arguments::wide_shape(const char* name, const at::Tensor& tensor, c10::SymIntArrayRef sizes) const {
  if (!tensor.defined()) return *this;
  check_sizes(name, tensor, sizes);
  check_type(name, tensor, wide_type(first_));
  return *this;
}

const Arguments& Arguments::parameter(const char* name, const at::Tensor& tensor, c10::SymIntArrayRef sizes) const {
  if (!tensor.defined()) return *this;
  check_sizes(name, tensor, sizes);
  const bool is_wide = tensor.scalar_type() == wide_type(first_);
  check_type(name, tensor, is_wide ? wide_type(first_) : first_.scalar_type());
  return *this;
}

const Arguments& Arguments::same_type(const char* name, const at::Tensor& tensor) const {
  if (tensor.defined()) check_type(name, tensor, first_.scalar_type());
  return *this;
}

const Arguments& Arguments::index(const char* name, const at::Tensor& tensor) const {
  if (!tensor.defined()) return *this;
  if (tensor.scalar_type() != at::kLong) refuse(name, "Long (int64)", text(tensor.scalar_type()));
  if (tensor.device() != first_.device()) {
    refuse(name, text(first_.device(), ", where ", first_name_, " is"), text(tensor.device()));
  }
  return *this;
}

const Arguments& Arguments::index_shape(const char* name, const at::Tensor& tensor, c10::SymIntArrayRef sizes) const {
  if (tensor.defined()) check_sizes(name, tensor, sizes);
  return index(name, tensor);
}

const Arguments& Arguments::constant(const char* name, const at::Tensor& tensor) const {
  if (tensor.defined() && tensor.requires_grad() && c10::GradMode::is_enabled()) {
    refuse(name, "a tensor that needs no gradient", "one that requires it");
  }
  return *this;
}

const Arguments& Arguments::require(bool condition, const char* name, const std::string& expected,
                                    const std::string& got) const {
  if (!condition) refuse(name, expected, got);
  return *this;
}

void Arguments::refuse(const char* name, const std::string& expected, const std::string& got) const {
  throw UsageError(text("siamese::", op_, ": ", name, ": expected ", expected, ", got ", got));
}

void check_indices(const char* op, const char* name, const at::Tensor& indices, int64_t size) {
  const at::Tensor dense = indices.contiguous();
  const int64_t* const begin = dense.const_data_ptr<int64_t>();
  const int64_t* const end = begin + dense.numel();
  const int64_t* const bad = std::find_if(begin, end, [size](int64_t i) { return i < 0 || i >= size; });
  if (bad != end) {
    throw UsageError(text("siamese::", op, ": ", name, ": expected indices from 0 to ", size - 1, ", got ", *bad));
  }
}

}  // namespace siamese::ops
