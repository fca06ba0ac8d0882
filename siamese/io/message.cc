#include "siamese/io/message.h"

#include <system_error>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/base/utf8.h"

namespace siamese::io {

std::string in_quotes(std::string_view text) {
  constexpr size_t kLongest = 80;
  return "'" + printable(text, kLongest) + "'";
}

std::string shape_text(const std::vector<int64_t>& shape) {
  constexpr size_t kMost = 16;
  if (shape.size() <= kMost) return fmt::format("[{}]", fmt::join(shape, ", "));
  return fmt::format("[{}, ... {} in all]", fmt::join(shape.begin(), shape.begin() + kMost, ", "), shape.size());
}

void throw_system_error(std::string_view action, const std::filesystem::path& path, int error) {
  throw SystemError(fmt::format("cannot {} '{}': {}", action, path.string(), std::generic_category().message(error)));
}

void throw_read_error(const std::filesystem::path& path, int error) {
  throw DataError(fmt::format("cannot read '{}': {}", path.string(), std::generic_category().message(error)));
}

}  // namespace siamese::io
