// A file of token ids, memory-mapped, in the layouts people already have:
//   nanogpt_bin   raw uint16
//   llmc_bin      256 int32 (magic, version, count, 0...) then tokens: 20240520/1 uint16, 20240801/7 uint32
//   olmo_npy_u16  raw uint16 without a header, despite the extension .npy
//   olmo_npy_u32  raw uint32, likewise
//   npy           a real NPY, one dimension, any integer type
//   megatron      raw tokens in NAME.bin, their type and the lengths of the sequences in NAME.idx beside it
//   auto          npy by its magic; .bin: megatron when its .idx is there, llmc_bin by its magic, else nanogpt_bin;
//                 .npy: raw uint16 if the vocabulary fits (<= 65536), else uint32
// The layout is checked at open, and the tokens at both ends; that every token < vocab, when it is read, so that
// opening takes no longer for a larger file, and a file that is changed later does no harm. A DataError names the file,
// the byte offset, the token found and the vocabulary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "siamese/base/enum_text.h"
#include "siamese/io/dtype.h"
#include "siamese/io/mapped_file.h"

namespace siamese::io {

enum class TokenFormat { auto_, nanogpt_bin, llmc_bin, olmo_npy_u16, olmo_npy_u32, npy, megatron };

class TokenFile {
 public:
  static TokenFile open(const std::filesystem::path& path, TokenFormat format, int64_t vocab);

  int64_t size() const { return size_; }          // tokens, at least 1
  TokenFormat format() const { return format_; }  // what it turned out to be, never auto
  DType dtype() const { return dtype_; }          // of the stored tokens

  // Tokens [begin, begin + out.size()), which must lie inside the file. DataError when one is not below the vocabulary.
  void read(int64_t begin, std::span<int64_t> out) const;

 private:
  TokenFile(MappedFile file, std::string name, int64_t vocab);

  MappedFile file_;
  std::string name_;
  uint64_t vocab_;
  TokenFormat format_ = TokenFormat::auto_;
  DType dtype_ = DType::u16;
  size_t offset_ = 0;  // of the first token
  int64_t size_ = 0;
};

}  // namespace siamese::io

namespace siamese {

template <>
struct EnumText<io::TokenFormat> {
  static constexpr EnumNames<io::TokenFormat, 7> names{{{io::TokenFormat::auto_, "auto"},
                                                        {io::TokenFormat::nanogpt_bin, "nanogpt_bin"},
                                                        {io::TokenFormat::llmc_bin, "llmc_bin"},
                                                        {io::TokenFormat::olmo_npy_u16, "olmo_npy_u16"},
                                                        {io::TokenFormat::olmo_npy_u32, "olmo_npy_u32"},
                                                        {io::TokenFormat::npy, "npy"},
                                                        {io::TokenFormat::megatron, "megatron"}}};
};

}  // namespace siamese
