#include "siamese/cli/short_count.h"

#include <utility>

#include <fmt/format.h>

namespace siamese::cli {

std::string short_count(double count) {
  for (const auto& [size, unit] : {std::pair{1e18, "E"}, std::pair{1e15, "P"}, std::pair{1e12, "T"},
                                   std::pair{1e9, "B"}, std::pair{1e6, "M"}, std::pair{1e3, "K"}}) {
    if (count >= size) return fmt::format("{:.4g}{}", count / size, unit);
  }
  return fmt::format("{}", count);
}

std::string short_bytes(double bytes) {
  for (const auto& [size, unit] : {std::pair{1e15, "PB"}, std::pair{1e12, "TB"}, std::pair{1e9, "GB"},
                                   std::pair{1e6, "MB"}, std::pair{1e3, "KB"}}) {
    if (bytes >= size) return fmt::format("{:.4g} {}", bytes / size, unit);
  }
  return fmt::format("{} bytes", bytes);
}

}  // namespace siamese::cli
