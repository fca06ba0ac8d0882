#include "siamese/io/megatron_index.h"

#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/io/mapped_file.h"

namespace siamese::io {
namespace {

constexpr std::string_view kIndexMagic("MMIDIDX\0\0", 9);
constexpr size_t kVersionAt = 9;
constexpr size_t kTypeAt = 17;
constexpr size_t kSequencesAt = 18;
constexpr size_t kDocumentsAt = 26;
constexpr size_t kIndexHeaderBytes = 34;

std::filesystem::path index_of(std::filesystem::path tokens) { return tokens.replace_extension(".idx"); }

using Bytes = std::span<const std::byte>;

Bytes bytes_of(const MappedFile& file) { return {reinterpret_cast<const std::byte*>(file.data()), file.size()}; }

bool begins_right(Bytes bytes) {
  return bytes.size() >= kIndexMagic.size() && std::memcmp(bytes.data(), kIndexMagic.data(), kIndexMagic.size()) == 0;
}

template <class T>
T load(Bytes bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

DType dtype_of(unsigned code, const std::string& name) {
  switch (code) {
    case 1:
      return DType::u8;
    case 2:
      return DType::i8;
    case 3:
      return DType::i16;
    case 4:
      return DType::i32;
    case 5:
      return DType::i64;
    case 8:
      return DType::u16;
    default:
      throw DataError(
          fmt::format("{}: the type of tokens at byte {}: expected 1, 2, 3, 4, 5 or 8, got {}", name, kTypeAt, code));
  }
}

}  // namespace

bool has_megatron_index(const std::filesystem::path& tokens) {
  const auto path = index_of(tokens);
  return is_file(path) && begins_right(bytes_of(MappedFile(path)));
}

MegatronIndex parse_megatron_index(Bytes bytes, const std::string& name) {
  if (!begins_right(bytes) || bytes.size() < kIndexHeaderBytes) {
    throw DataError(fmt::format("{}: expected a Megatron index (MMIDIDX)", name));
  }
  if (const auto version = load<uint64_t>(bytes, kVersionAt); version != 1) {
    throw DataError(fmt::format("{}: the version at byte {}: expected 1, got {}", name, kVersionAt, version));
  }
  MegatronIndex index;
  index.dtype = dtype_of(load<uint8_t>(bytes, kTypeAt), name);
  index.sequences = load<uint64_t>(bytes, kSequencesAt);
  const auto documents = load<uint64_t>(bytes, kDocumentsAt);
  constexpr uint64_t kPerSequence = sizeof(int32_t) + sizeof(int64_t);
  const uint64_t body = bytes.size() - kIndexHeaderBytes;
  if (index.sequences > body / kPerSequence || documents > body / sizeof(int64_t) ||
      index.sequences * kPerSequence + documents * sizeof(int64_t) != body) {
    throw DataError(fmt::format("{}: counts {} sequences and {} documents, but {} bytes follow its header", name,
                                index.sequences, documents, body));
  }
  const size_t offsets_at = kIndexHeaderBytes + index.sequences * sizeof(int32_t);
  for (uint64_t i = 0; i < index.sequences; ++i) {
    const auto length = load<int32_t>(bytes, kIndexHeaderBytes + i * sizeof(int32_t));
    const auto offset = load<int64_t>(bytes, offsets_at + i * sizeof(int64_t));
    if (length < 0 || offset < 0 || static_cast<uint64_t>(offset) != index.tokens * dtype_size(index.dtype)) {
      throw DataError(fmt::format("{}: sequence {} of length {} begins at byte {}: expected {}", name, i, length,
                                  offset, index.tokens * dtype_size(index.dtype)));
    }
    index.tokens += static_cast<uint64_t>(length);
  }
  return index;
}

MegatronIndex read_megatron_index(const std::filesystem::path& tokens) {
  const auto path = index_of(tokens);
  const MappedFile file(path);
  return parse_megatron_index(bytes_of(file), path.string());
}

}  // namespace siamese::io
