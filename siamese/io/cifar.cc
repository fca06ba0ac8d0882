#include "siamese/io/cifar.h"

#include <fmt/format.h>

#include "siamese/base/check.h"

namespace siamese::io {
namespace {

constexpr size_t kSide = 32;
constexpr size_t kPlane = kSide * kSide;

}  // namespace

CifarFile CifarFile::open(const std::filesystem::path& path, CifarKind kind) {
  const size_t record = 3 * kPlane + (kind == CifarKind::cifar10 ? 1 : 2);
  MappedFile mapped(path);
  if (mapped.size() == 0 || mapped.size() % record != 0) {
    throw DataError(fmt::format("{}: expected CIFAR records of {} bytes, got {} bytes in all", path.string(), record,
                                mapped.size()));
  }
  CifarFile file(std::move(mapped), record);
  const int64_t classes = kind == CifarKind::cifar10 ? 10 : 100;
  for (int64_t i = 0; i < file.size(); ++i) {
    if (file.label(i) >= classes) {
      throw DataError(
          fmt::format("{}: record {}: expected a label below {}, got {}", path.string(), i, classes, file.label(i)));
    }
  }
  return file;
}

int64_t CifarFile::label(int64_t index) const {
  const size_t labels = record_ - 3 * kPlane;
  return std::to_integer<int64_t>(file_.data()[static_cast<size_t>(index) * record_ + labels - 1]);
}

Image CifarFile::image(int64_t index) const {
  const std::byte* planes = file_.data() + static_cast<size_t>(index + 1) * record_ - 3 * kPlane;
  Image image(kSide, kSide, 3);
  for (size_t i = 0; i < 3 * kPlane; ++i) image.pixels[i] = std::to_integer<uint8_t>(planes[i % 3 * kPlane + i / 3]);
  return image;
}

}  // namespace siamese::io
