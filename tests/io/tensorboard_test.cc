// Event files byte by byte, read here by the definition of the formats.
#include "siamese/io/tensorboard.h"

#include <bit>
#include <cstring>
#include <map>
#include <stdexcept>

#include <gtest/gtest.h>

namespace siamese::io {
namespace {
namespace event_bytes {

uint64_t number_at(std::string_view bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value |= uint64_t{static_cast<uint8_t>(bytes.at(at + i))} << (8 * i);
  return value;
}

uint32_t masked(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

std::vector<std::string> messages(std::string_view file) {
  std::vector<std::string> all;
  while (!file.empty()) {
    const uint64_t length = number_at(file, 0, 8);
    EXPECT_EQ(number_at(file, 8, 4), masked(file.substr(0, 8)));
    all.emplace_back(file.substr(12, length));
    EXPECT_EQ(number_at(file, 12 + length, 4), masked(all.back()));
    file.remove_prefix(16 + length);
  }
  return all;
}

// The fields of a message by number, each as the bytes of its value; a repeated one is kept in order.
std::multimap<int, std::string> fields(std::string_view message) {
  std::multimap<int, std::string> all;
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(message.at(at++));
      value |= uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.size()) {
    const uint64_t key = varint();
    const int field = static_cast<int>(key >> 3);
    if ((key & 7) == 0) {
      all.emplace(field, std::to_string(varint()));
      continue;
    }
    const size_t size = (key & 7) == 1 ? 8 : (key & 7) == 5 ? 4 : (key & 7) == 2 ? varint() : 0;
    if (size == 0) throw std::runtime_error("a field of no known kind");
    all.emplace(field, message.substr(at, size));
    at += size;
  }
  return all;
}

std::string only(const std::multimap<int, std::string>& all, int field) {
  EXPECT_EQ(all.count(field), 1U) << field;
  return all.find(field)->second;
}

double as_double(const std::string& bytes) { return std::bit_cast<double>(number_at(bytes, 0, 8)); }
float as_float(const std::string& bytes) { return std::bit_cast<float>(static_cast<uint32_t>(number_at(bytes, 0, 4))); }

TEST(TensorBoard, TheChecksumIsCastagnolis) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);            // the check value of the catalogues
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
  EXPECT_EQ(crc32c(""), 0U);
}

TEST(TensorBoard, ARecordIsFramed) {
  const std::string record = tf_record("abc");
  ASSERT_EQ(record.size(), 8U + 4 + 3 + 4);
  EXPECT_EQ(messages(record), (std::vector<std::string>{"abc"}));
  EXPECT_EQ(record.substr(0, 8), std::string("\3\0\0\0\0\0\0\0", 8));
}

TEST(TensorBoard, AFileBeginsWithItsVersionAndASession) {
  const auto all = messages(first_events(1.5, 7));
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(as_double(only(fields(all[0]), 1)), 1.5);
  EXPECT_EQ(only(fields(all[0]), 3), "brain.Event:2");
  EXPECT_EQ(only(fields(all[1]), 2), "7");
  EXPECT_EQ(only(fields(only(fields(all[1]), 7)), 1), "1");  // START
}

TEST(TensorBoard, NumbersOfAStepAreOneEvent) {
  const auto all = messages(scalar_event(1763449200.25, 300, {{"train/loss", 2.5}, {"\u00e9", -1e-3}}));
  ASSERT_EQ(all.size(), 1U);
  const auto event = fields(all[0]);
  EXPECT_EQ(as_double(only(event, 1)), 1763449200.25);
  EXPECT_EQ(only(event, 2), "300");
  const auto values = fields(only(event, 5));
  ASSERT_EQ(values.count(1), 2U);
  const auto first = fields(values.begin()->second), second = fields(std::next(values.begin())->second);
  EXPECT_EQ(only(first, 1), "train/loss");
  EXPECT_EQ(as_float(only(first, 2)), 2.5F);
  EXPECT_EQ(only(second, 1), "\u00e9");
  EXPECT_EQ(as_float(only(second, 2)), -1e-3F);
  EXPECT_EQ(scalar_event(0, 1, {}), "");
}

}  // namespace event_bytes
}  // namespace
}  // namespace siamese::io
