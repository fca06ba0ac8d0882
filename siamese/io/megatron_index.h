// The index of Megatron's token files: NAME.idx beside NAME.bin.
//   "MMIDIDX\0\0", u64 version 1, u8 type (1 u8, 2 i8, 3 i16, 4 i32, 5 i64, 8 u16), u64 sequences, u64 documents,
//   then i32 lengths [sequences], i64 byte offsets [sequences], i64 first sequence of each document [documents]
// The tokens of NAME.bin are read one after the other, as the sequences lie there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "siamese/io/dtype.h"

namespace siamese::io {

struct MegatronIndex {
  DType dtype = DType::u16;
  uint64_t sequences = 0;
  uint64_t tokens = 0;
};

// Whether NAME.idx stands beside `tokens` and begins as such an index.
bool has_megatron_index(const std::filesystem::path& tokens);

// Of the bytes of NAME.idx, which errors call `name`.
MegatronIndex parse_megatron_index(std::span<const std::byte> bytes, const std::string& name);

// DataError naming NAME.idx when it is missing, damaged, or its sequences do not follow one another without a gap.
MegatronIndex read_megatron_index(const std::filesystem::path& tokens);

}  // namespace siamese::io
