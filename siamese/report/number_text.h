// Numbers of a group as a table shows them; "-" where there is none.
#pragma once

#include <string>

#include "siamese/report/aggregate.h"

namespace siamese::report {

// "1.0502 +- 0.0438 %", "(2 of 3)" after it where the mean leaves runs of the group out, '*' where none has finished.
std::string spread_text(const ResultGroup& group, const MeanSpread& value, double scale, int decimals,
                        const char* unit);
// The held-out loss.
std::string loss_text(const ResultGroup& group);
std::string rate_text(double lr);

}  // namespace siamese::report
