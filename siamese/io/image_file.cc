#include "siamese/io/image_file.h"

#include <array>
#include <fstream>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/io/jpeg.h"
#include "siamese/io/mapped_file.h"
#include "siamese/io/png.h"

namespace siamese::io {

bool is_image_file(const std::filesystem::path& path) {
  std::array<char, 8> start{};
  std::ifstream file(path, std::ios::binary);
  file.read(start.data(), start.size());
  const auto bytes =
      std::as_bytes(std::span(start)).first(static_cast<size_t>(std::max<std::streamsize>(0, file.gcount())));
  return is_png(bytes) || is_jpeg(bytes);
}

Image read_image(const std::filesystem::path& path) {
  const MappedFile file(path);
  if (is_png(file.bytes())) return decode_png(file.bytes(), path.string());
  if (is_jpeg(file.bytes())) return decode_jpeg(file.bytes(), path.string());
  throw DataError(fmt::format("{}: expected a PNG or JPEG image, got neither signature", path.string()));
}

}  // namespace siamese::io
