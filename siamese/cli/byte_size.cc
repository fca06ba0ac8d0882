#include "siamese/cli/byte_size.h"

#include <charconv>
#include <cmath>
#include <string_view>

#include "siamese/base/check.h"

namespace siamese::cli {

uint64_t byte_size(const std::string& flag, const std::string& text) {
  constexpr std::pair<std::string_view, uint64_t> kUnits[] = {
      {"", 1},
      {"B", 1},
      {"KB", 1'000},
      {"MB", 1'000'000},
      {"GB", 1'000'000'000},
      {"TB", 1'000'000'000'000},
      {"KiB", uint64_t{1} << 10},
      {"MiB", uint64_t{1} << 20},
      {"GiB", uint64_t{1} << 30},
      {"TiB", uint64_t{1} << 40},
  };
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  for (const auto& [name, bytes] : kUnits) {
    uint64_t size = 0;
    if (error == std::errc() && unit == name && number > 0 && !__builtin_mul_overflow(number, bytes, &size)) {
      return size;
    }
  }
  throw UsageError(flag + ": expected a size such as 5GB, 800MB or 2GiB, got '" + text + "'");
}

double byte_rate(const std::string& flag, const std::string& text) {
  constexpr std::string_view kEachSecond = "/s";
  try {
    if (text.ends_with(kEachSecond)) {
      return static_cast<double>(byte_size(flag, text.substr(0, text.size() - kEachSecond.size())));
    }
  } catch (const UsageError&) {  // said below
  }
  throw UsageError(flag + ": expected a rate such as 25GB/s or 800MB/s, got '" + text + "'");
}

double operation_rate(const std::string& flag, const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  for (const auto& [name, factor] :
       {std::pair{"", 1.0}, std::pair{"G", 1e9}, std::pair{"T", 1e12}, std::pair{"P", 1e15}}) {
    if (error == std::errc() && unit == name && number > 0 && std::isfinite(number * factor)) return number * factor;
  }
  throw UsageError(flag + ": expected operations a second such as 312T or 1.5P, got '" + text + "'");
}

}  // namespace siamese::cli
