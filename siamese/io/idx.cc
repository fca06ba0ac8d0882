#include "siamese/io/idx.h"

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/io/message.h"

namespace siamese::io {
namespace {

uint32_t big_endian(std::span<const std::byte> bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | std::to_integer<uint32_t>(bytes[at + i]);
  return value;
}

std::vector<int64_t> parse_shape(std::span<const std::byte> bytes, const std::string& name) {
  const auto refuse = [&name](const std::string& why) { throw DataError(name + ": " + why); };
  if (bytes.size() >= 2 && bytes[0] == std::byte{0x1F} && bytes[1] == std::byte{0x8B}) {
    refuse("expected an IDX file, got a gzipped one: unpack it with gunzip");
  }
  if (bytes.size() < 4) refuse(fmt::format("expected an IDX header of at least 4 bytes, got {}", bytes.size()));
  const uint32_t magic = big_endian(bytes, 0);
  const uint32_t dimensions = magic & 0xFFU;
  if (magic >> 8 != 0x08 || dimensions < 1 || dimensions > 4) {
    refuse(fmt::format("IDX magic at byte 0: expected 0x000008 and 1 to 4 dimensions, got 0x{:08x}", magic));
  }
  const size_t header = 4 + 4 * size_t{dimensions};
  if (bytes.size() < header) refuse(fmt::format("expected an IDX header of {} bytes, got {}", header, bytes.size()));
  std::vector<int64_t> shape;
  __extension__ using Wide = unsigned __int128;  // four sizes of 32 bits
  Wide total = 1;
  Wide nonzero = 1;  // a zero does not excuse the others: whoever multiplies some of them would overflow
  for (size_t i = 0; i < dimensions; ++i) {
    shape.push_back(big_endian(bytes, 4 + 4 * i));
    total *= static_cast<Wide>(shape.back());
    if (shape.back() != 0) nonzero *= static_cast<Wide>(shape.back());
  }
  if (total != bytes.size() - header || nonzero >> 63 != 0) {
    refuse(fmt::format("expected {} bytes of data as the IDX header says, got {}", shape_text(shape),
                       bytes.size() - header));
  }
  return shape;
}

}  // namespace

IdxFile IdxFile::open(const std::filesystem::path& path) {
  MappedFile file(path);
  auto shape = parse_shape(file.bytes(), path.string());
  return IdxFile(std::move(file), std::move(shape));
}

}  // namespace siamese::io
