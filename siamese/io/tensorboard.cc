#include "siamese/io/tensorboard.h"

#include <array>
#include <bit>

namespace siamese::io {

namespace tensorboard_detail {

// Castagnoli's polynomial, its bits reversed.
constexpr uint32_t kPolynomial = 0x82f63b78;

constexpr std::array<uint32_t, 256> byte_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}

uint32_t masked(uint32_t crc) { return std::rotr(crc, 15) + 0xa282ead8; }

std::string little_endian(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(value >> (8 * i)));
  return text;
}

// Protocol buffers: a field is its number and kind, then the value; a varint has 7 bits a byte, the lowest first.
enum Kind { varint = 0, fixed64 = 1, counted = 2, fixed32 = 5 };

std::string varint_text(uint64_t value) {
  std::string text;
  for (; value >= 0x80; value >>= 7) text.push_back(static_cast<char>(value | 0x80));
  text.push_back(static_cast<char>(value));
  return text;
}

std::string key(int field, Kind kind) { return varint_text(static_cast<uint64_t>(field) << 3 | kind); }
std::string of_double(int field, double value) {
  return key(field, fixed64) + little_endian(std::bit_cast<uint64_t>(value), 8);
}
std::string of_float(int field, float value) {
  return key(field, fixed32) + little_endian(std::bit_cast<uint32_t>(value), 4);
}
std::string of_whole(int field, int64_t value) {
  return key(field, varint) + varint_text(static_cast<uint64_t>(value));
}
std::string of_bytes(int field, std::string_view value) {
  return key(field, counted) + varint_text(value.size()) + std::string(value);
}

std::string event(double wall_time, int64_t step, const std::string& what) {
  return tf_record(of_double(1, wall_time) + of_whole(2, step) + what);
}

}  // namespace tensorboard_detail

uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = tensorboard_detail::byte_table();
  uint32_t crc = ~uint32_t{0};
  for (const char byte : bytes) crc = kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

std::string tf_record(std::string_view message) {
  using namespace tensorboard_detail;
  const std::string length = little_endian(message.size(), 8);
  return length + little_endian(masked(crc32c(length)), 4) + std::string(message) +
         little_endian(masked(crc32c(message)), 4);
}

std::string first_events(double wall_time, int64_t step) {
  using namespace tensorboard_detail;
  constexpr int64_t kStart = 1;
  return tf_record(of_double(1, wall_time) + of_bytes(3, "brain.Event:2")) +
         event(wall_time, step, of_bytes(7, of_whole(1, kStart)));
}

std::string scalar_event(double wall_time, int64_t step, const std::vector<std::pair<std::string, double>>& numbers) {
  using namespace tensorboard_detail;
  if (numbers.empty()) return "";
  std::string summary;
  for (const auto& [tag, value] : numbers) {
    summary += of_bytes(1, of_bytes(1, tag) + of_float(2, static_cast<float>(value)));
  }
  return event(wall_time, step, of_bytes(5, summary));
}

}  // namespace siamese::io
