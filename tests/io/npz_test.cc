// An NPZ file read here by the definition of ZIP, its array by our own reader of NPY.
#include "siamese/io/npz.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include "siamese/base/check.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/npy.h"

namespace siamese::io {
namespace {
namespace archives {

class Npz : public ::testing::Test {
 protected:
  Npz() : file(std::filesystem::temp_directory_path() / ("siamese_npz_" + std::to_string(::getpid()) + ".npz")) {}
  ~Npz() override { std::filesystem::remove(file); }
  uint64_t number(size_t at, size_t size) const {
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) value |= uint64_t{static_cast<uint8_t>(bytes.at(at + i))} << (8 * i);
    return value;
  }

  std::filesystem::path file;
  std::string bytes;
};

TEST_F(Npz, IsAnArchiveOfOneArray) {
  std::vector<uint8_t> pixels(2 * 3 * 5 * 3);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(7 * i + 1);
  write_npz(file, "arr_0", {2, 3, 5, 3}, pixels);
  bytes = read_file(file);
  // From the end, as readers do: the end record, its 64-bit kind by the locator before it, the directory, the entry.
  const size_t end = bytes.size() - 22;
  ASSERT_EQ(number(end, 4), 0x06054b50U);
  EXPECT_EQ(number(end + 10, 2), 1U);
  EXPECT_EQ(number(end + 20, 2), 0U);
  ASSERT_EQ(number(end - 20, 4), 0x07064b50U);
  const size_t end64 = number(end - 20 + 8, 8);
  ASSERT_EQ(number(end64, 4), 0x06064b50U);
  EXPECT_EQ(number(end64 + 4, 8), 44U);
  EXPECT_EQ(end64 + 56, end - 20);
  EXPECT_EQ(number(end64 + 32, 8), 1U);  // entries
  const size_t directory = number(end64 + 48, 8);
  EXPECT_EQ(directory + number(end64 + 40, 8), end64);
  ASSERT_EQ(number(directory, 4), 0x02014b50U);
  EXPECT_EQ(number(directory + 10, 2), 0U);  // stored
  const uint64_t crc = number(directory + 16, 4);
  EXPECT_EQ(bytes.substr(directory + 46, 9), "arr_0.npy");
  EXPECT_EQ(number(directory + 28, 2), 9U);
  const size_t extra = directory + 46 + 9;
  EXPECT_EQ(number(extra, 2), 1U);
  const uint64_t size = number(extra + 4, 8);
  EXPECT_EQ(number(extra + 12, 8), size);
  EXPECT_EQ(number(extra + 20, 8), 0U);  // where its entry is
  ASSERT_EQ(number(0, 4), 0x04034b50U);
  EXPECT_EQ(number(14, 4), crc);
  EXPECT_EQ(number(30 + 9 + 4, 8), size);
  const size_t begin = 30 + number(26, 2) + number(28, 2);
  EXPECT_EQ(begin + size, directory);
  const std::string_view member = std::string_view(bytes).substr(begin, size);
  EXPECT_EQ(::crc32(0, reinterpret_cast<const Bytef*>(member.data()), static_cast<uInt>(size)), crc);
  const NpyView array = parse_npy(std::as_bytes(std::span(member)), "arr_0");
  EXPECT_EQ(array.dtype, DType::u8);
  EXPECT_EQ(array.shape, (std::vector<int64_t>{2, 3, 5, 3}));
  EXPECT_EQ(array.offset % 64, 0U);
  ASSERT_EQ(array.data.size(), pixels.size());
  for (size_t i = 0; i < pixels.size(); ++i) ASSERT_EQ(static_cast<uint8_t>(array.data[i]), pixels[i]);
}

TEST_F(Npz, OtherShapes) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{4}, {}, {0, 8, 8, 3}}) {
    const std::string header = npy_header(shape);
    const int64_t count = shape.empty() ? 1 : shape[0] * (shape.size() > 1 ? 192 : 1);
    const std::string whole = header + std::string(static_cast<size_t>(count), 'x');
    EXPECT_EQ(parse_npy(std::as_bytes(std::span(whole)), "here").shape, shape);
  }
  EXPECT_THROW(write_npz(file, "arr_0", {2, 2}, std::vector<uint8_t>(3)), UsageError);
  EXPECT_FALSE(std::filesystem::exists(file));
}

}  // namespace archives
}  // namespace
}  // namespace siamese::io
