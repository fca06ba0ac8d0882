// Checks of an op's arguments: a mistake is a UsageError of one line that names the op, the argument, what was expected
// and what came. Sizes may be symbols (torch.compile with dynamic shapes). An undefined tensor passes: an argument that
// must be there is not optional in the schema.
#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>
#include <c10/core/SymIntArrayRef.h>

namespace siamese::ops {

class Arguments {
 public:
  // `first` decides type and device of the others. A floating-point type.
  Arguments(const char* op, const char* first_name, const at::Tensor& first);

  // rank dimensions, and no others
  const Arguments& rank(const char* name, const at::Tensor& tensor, int64_t rank) const;
  const Arguments& least_rank(const char* name, const at::Tensor& tensor, int64_t rank) const;
  // exactly these sizes; type and device of the first argument
  const Arguments& shape(const char* name, const at::Tensor& tensor, c10::SymIntArrayRef sizes) const;
  // the same, or bfloat16: what comes back to a result that was rounded
  const Arguments& shape_or_half(const char* name, const at::Tensor& tensor, c10::SymIntArrayRef sizes) const;
  // exactly these sizes, for a parameter: type and device of the first argument, or float32 beside a half type
  const Arguments& parameter(const char* name, const at::Tensor& tensor, c10::SymIntArrayRef sizes) const;
  // type and device of the first argument, whatever its sizes
  const Arguments& same_type(const char* name, const at::Tensor& tensor) const;
  // exactly these sizes, for what is summed: float32 where the first argument is of a half type (ops/wide.h)
  const Arguments& wide_shape(const char* name, const at::Tensor& tensor, c10::SymIntArrayRef sizes) const;
  // int64 on the device of the first argument; of exactly these sizes
  const Arguments& index(const char* name, const at::Tensor& tensor) const;
  const Arguments& index_shape(const char* name, const at::Tensor& tensor, c10::SymIntArrayRef sizes) const;
  // a table, for which there is no gradient: refused where one would be recorded, and so lost
  const Arguments& constant(const char* name, const at::Tensor& tensor) const;
  // any other condition; `expected` and `got` end the line
  const Arguments& require(bool condition, const char* name, const std::string& expected, const std::string& got) const;

 private:
  void check_sizes(const char* name, const at::Tensor& tensor, c10::SymIntArrayRef sizes) const;
  void check_type(const char* name, const at::Tensor& tensor, at::ScalarType type) const;
  [[noreturn]] void refuse(const char* name, const std::string& expected, const std::string& got) const;

  const char* op_;
  const char* first_name_;
  const at::Tensor& first_;
};

// "[2, 3]"
std::string shape_text(c10::SymIntArrayRef sizes);

// For indices whose values can be read (CPU): UsageError unless 0 <= each < size.
void check_indices(const char* op, const char* name, const at::Tensor& indices, int64_t size);

}  // namespace siamese::ops
