// Element types of stored tensors, named as safetensors names them. Order: by size, then as the format's reference
// sorts them, so that "descending DType" lays a file out with every tensor naturally aligned.
#pragma once

#include <cstddef>

#include "siamese/base/enum_text.h"

namespace siamese::io {

enum class DType { boolean, u8, i8, i16, u16, f16, bf16, i32, u32, f32, f64, i64, u64 };

constexpr size_t dtype_size(DType dtype) {
  if (dtype <= DType::i8) return 1;
  if (dtype <= DType::bf16) return 2;
  if (dtype <= DType::f32) return 4;
  return 8;
}

}  // namespace siamese::io

namespace siamese {

template <>
struct EnumText<io::DType> {
  static constexpr EnumNames<io::DType, 13> names{{{io::DType::boolean, "BOOL"},
                                                   {io::DType::u8, "U8"},
                                                   {io::DType::i8, "I8"},
                                                   {io::DType::i16, "I16"},
                                                   {io::DType::u16, "U16"},
                                                   {io::DType::f16, "F16"},
                                                   {io::DType::bf16, "BF16"},
                                                   {io::DType::i32, "I32"},
                                                   {io::DType::u32, "U32"},
                                                   {io::DType::f32, "F32"},
                                                   {io::DType::f64, "F64"},
                                                   {io::DType::i64, "I64"},
                                                   {io::DType::u64, "U64"}}};
};

}  // namespace siamese
