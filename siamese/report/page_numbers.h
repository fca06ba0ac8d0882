// Numbers as the data island holds them: rounded, missing ones null.
#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "siamese/report/statistics.h"

namespace siamese::report {

inline constexpr int kCurveDigits = 5;
inline constexpr int kDepthDigits = 4;

nlohmann::json number(double value, int digits = 7);
nlohmann::json numbers(const std::vector<double>& values, int digits);
nlohmann::json spread(const MeanSpread& value);

}  // namespace siamese::report
