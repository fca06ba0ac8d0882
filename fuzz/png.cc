#include "siamese/io/png.h"

#include "fuzz/contract.h"
#include "fuzz/image_checks.h"

namespace siamese::fuzz {
namespace {

constexpr size_t kSignature = 8;
constexpr size_t kChunkHeader = 8;  // length, type
constexpr size_t kChecksum = 4;

uint32_t crc_of(std::string_view text) {
  uint32_t crc = ~0U;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1U ? 0xEDB88320U : 0U);
  }
  return ~crc;
}

// The same chunks, each with the checksum that fits it.
std::string with_checksums(std::string file) {
  size_t at = kSignature;
  while (at + kChunkHeader + kChecksum <= file.size()) {
    size_t length = 0;
    for (size_t i = 0; i < 4; ++i) length = length << 8 | static_cast<unsigned char>(file[at + i]);
    if (length > file.size() - at - kChunkHeader - kChecksum) break;
    const uint32_t crc = crc_of(std::string_view(file).substr(at + 4, 4 + length));
    at += kChunkHeader + length;
    for (size_t i = 0; i < kChecksum; ++i) file[at + i] = static_cast<char>(crc >> (24 - 8 * i));
    at += kChecksum;
  }
  return file;
}

void check_one(Bytes bytes) {
  reads_or_refuses([&] {
    const io::Image image = io::decode_png(bytes, "file");
    require_sound(image);
    const std::string written = io::encode_png(image);
    const auto again = reads([&] { return io::decode_png(std::as_bytes(std::span(written)), "again"); });
    require(again == image, "an image is written as it was read");
  });
}

}  // namespace

void check_png(Bytes bytes) {
  check_one(bytes);
  const std::string mended = with_checksums(std::string(text_of(bytes)));
  check_one(std::as_bytes(std::span(mended)));
}

}  // namespace siamese::fuzz
