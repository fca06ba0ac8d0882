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
  return CifarFile(std::move(mapped), path.string(), record);
}

int64_t CifarFile::label(int64_t index) const {
  const size_t labels = record_ - 3 * kPlane;
  const size_t at = static_cast<size_t>(index) * record_ + labels - 1;
  const int64_t classes = labels == 1 ? 10 : 100;
  const auto label = std::to_integer<int64_t>(file_.data()[at]);
  if (label < classes) return label;
  throw DataError(
      fmt::format("{}: record {}: expected a label below {}, got {} at byte {}", name_, index, classes, label, at));
}

Image CifarFile::image(int64_t index) const {
  const std::byte* planes = file_.data() + static_cast<size_t>(index + 1) * record_ - 3 * kPlane;
  Image image(kSide, kSide, 3);
  for (size_t i = 0; i < 3 * kPlane; ++i) image.pixels[i] = std::to_integer<uint8_t>(planes[i % 3 * kPlane + i / 3]);
  return image;
}

}  // namespace siamese::io
