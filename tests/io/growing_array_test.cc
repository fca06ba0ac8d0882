#include "siamese/io/growing_array.h"

#include "tests/io/support.h"

#include "siamese/io/npy.h"

namespace siamese::io {
namespace {

using GrowingArrays = InFolder;

void append(GrowingArray& array, const std::vector<uint16_t>& values) {
  array.append(std::as_bytes(std::span(values)));
}

std::vector<uint16_t> stored(const std::filesystem::path& path) {
  const NpyFile file = NpyFile::open(path);
  EXPECT_EQ(file.view().dtype, DType::u16);
  std::vector<uint16_t> values(static_cast<size_t>(file.view().shape.at(0)));
  std::memcpy(values.data(), file.view().data.data(), file.view().data.size());
  return values;
}

TEST_F(GrowingArrays, AppearsWhenFinished) {
  const auto path = folder_ / "a.npy";
  GrowingArray array(path, DType::u16, 0);
  append(array, {1, 2, 3});
  append(array, {65535});
  EXPECT_EQ(names(), std::vector<std::string>{"a.npy.partial"});
  array.finish();
  EXPECT_EQ(names(), std::vector<std::string>{"a.npy"});
  EXPECT_EQ(stored(path), (std::vector<uint16_t>{1, 2, 3, 65535}));
}

TEST_F(GrowingArrays, GoesOnAfterWhatIsKnownToBeGood) {
  const auto path = folder_ / "a.npy";
  {
    GrowingArray array(path, DType::u16, 0);
    append(array, {1, 2, 3, 4});
    array.sync();
  }
  {
    GrowingArray array(path, DType::u16, 2);
    append(array, {7});
    array.finish();
  }
  EXPECT_EQ(stored(path), (std::vector<uint16_t>{1, 2, 7}));
  {
    GrowingArray finished(path, DType::u16, 1);  // killed after finishing, before that was noted
    append(finished, {9});
    finished.finish();
  }
  EXPECT_EQ(stored(path), (std::vector<uint16_t>{1, 9}));
  EXPECT_EQ(names(), std::vector<std::string>{"a.npy"});
  expect_error<DataError>([&] { GrowingArray(path, DType::u16, 100); }, {"a.npy", "expected at least"});
}

TEST_F(GrowingArrays, AFullDiskIsAnError) {
  GrowingArray array(folder_ / "a.npy", DType::u16, 0);
  const FullDisk full(4096);
  append(array, std::vector<uint16_t>(10'000));
  expect_error<SystemError>([&] { array.sync(); }, {"cannot write"});
}

}  // namespace
}  // namespace siamese::io
