#include "siamese/base/duration.h"

#include <cmath>
#include <cstdint>

namespace siamese {
namespace {

std::string two_digits(int64_t number) { return (number < 10 ? "0" : "") + std::to_string(number); }

}  // namespace

std::string duration_text(double seconds) {
  constexpr double kLongest = 1e15;  // past it the number is no time
  if (!(seconds >= 0 && seconds < kLongest)) return "?";
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole >= 3600) return std::to_string(whole / 3600) + "h" + two_digits(whole / 60 % 60) + "m";
  if (whole >= 60) return std::to_string(whole / 60) + "m" + two_digits(whole % 60) + "s";
  return std::to_string(whole) + "s";
}

}  // namespace siamese
