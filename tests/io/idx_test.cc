#include "siamese/io/idx.h"

#include "tests/io/support.h"

#include "siamese/io/cifar.h"

namespace siamese::io {
namespace {

namespace idx_test {

class Idx : public InFolder {};
class Cifar : public InFolder {};

const std::string kSample(
    "\x00\x00\x08\x02\x00\x00\x00\x02\x00\x00\x00\x03"
    "abcdef",
    18);

TEST_F(Idx, ReadsShapeAndData) {
  const IdxFile file = IdxFile::open(put("a", kSample));
  EXPECT_EQ(file.shape(), (std::vector<int64_t>{2, 3}));
  ASSERT_EQ(file.data().size(), 6U);
  EXPECT_EQ(file.data()[5], std::byte{'f'});
}

TEST_F(Idx, EveryOtherLengthIsRefused) {
  for (size_t length = 0; length < kSample.size(); ++length) {
    const auto path = put("cut", kSample.substr(0, length));
    expect_error<DataError>([&] { IdxFile::open(path); }, {"cut", "expected"});
    if (length > 12) expect_error<DataError>([&] { IdxFile::open(path); }, {"[2, 3]"});
  }
  expect_error<DataError>([&] { IdxFile::open(put("long", kSample + "g")); }, {"long", "[2, 3]", "got 7"});
}

TEST_F(Idx, HostileHeadersAreRefused) {
  expect_error<DataError>([&] { IdxFile::open(put("zip", "\x1F\x8B\x08 and so on")); }, {"zip", "gunzip"});
  std::string other = kSample;
  other[2] = 0x0D;  // floats
  expect_error<DataError>([&] { IdxFile::open(put("floats", other)); }, {"floats", "magic", "0x00000d02"});
  other = kSample;
  other[3] = 0;
  expect_error<DataError>([&] { IdxFile::open(put("none", other)); }, {"none", "dimensions"});
  // The product of these sizes is far past 64 bits.
  const std::string huge = std::string("\x00\x00\x08\x04", 4) + std::string(16, '\xFF');
  expect_error<DataError>([&] { IdxFile::open(put("huge", huge)); }, {"huge", "4294967295"});
}

std::string record(const std::string& labels) {
  std::string bytes = labels;
  for (int i = 0; i < 3072; ++i) bytes += static_cast<char>(i / 1024 * 80 + i % 64);
  return bytes;
}

TEST_F(Cifar, ReadsBothKinds) {
  const auto ten = CifarFile::open(put("ten", record("\x03") + record("\x09")), CifarKind::cifar10);
  ASSERT_EQ(ten.size(), 2);
  EXPECT_EQ(ten.label(0), 3);
  EXPECT_EQ(ten.label(1), 9);
  const Image image = ten.image(1);
  EXPECT_EQ(image.width * image.height * image.channels, 3072);
  EXPECT_EQ(image.at(5, 1)[0], 37);
  EXPECT_EQ(image.at(5, 1)[1], 117);
  EXPECT_EQ(image.at(5, 1)[2], 197);
  const auto hundred = CifarFile::open(put("hundred", record("\x13\x63")), CifarKind::cifar100);
  EXPECT_EQ(hundred.label(0), 99);  // the fine one
  EXPECT_EQ(hundred.image(0), image);
}

TEST_F(Cifar, WrongSizesAndLabelsAreRefused) {
  for (const size_t length : {0, 1, 3072, 3074}) {
    const auto path = put("cut", record("\x01\x01").substr(0, length));
    expect_error<DataError>([&] { CifarFile::open(path, CifarKind::cifar10); }, {"cut", "3073"});
  }
  const auto path = put("label", record("\x01") + record("\x0A"));
  const auto file = CifarFile::open(path, CifarKind::cifar10);
  EXPECT_EQ(file.label(0), 1);
  expect_error<DataError>([&] { file.label(1); }, {"label", "record 1", "got 10 at byte 3073"});
}

}  // namespace idx_test
}  // namespace
}  // namespace siamese::io
