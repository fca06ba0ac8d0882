#include "siamese/report/page_numbers.h"

#include <cmath>
#include <cstdint>

#include <nlohmann/json.hpp>

namespace siamese::report {

using nlohmann::json;

json number(double value, int digits) {
  if (!std::isfinite(value)) return nullptr;
  const double rounded = round_significant(value, digits);
  // "3" instead of "3.0": most of a page is numbers.
  if (rounded == std::floor(rounded) && std::fabs(rounded) < 1e15) return static_cast<int64_t>(rounded);
  return rounded;
}

json numbers(const std::vector<double>& values, int digits) {
  json list = json::array();
  for (double value : values) list.push_back(number(value, digits));
  return list;
}

json spread(const MeanSpread& value) {
  return {{"mean", number(value.mean)},
          {"spread", number(value.spread)},
          {"count", value.count},
          {"low", number(value.low)},
          {"high", number(value.high)}};
}

}  // namespace siamese::report
