#include "siamese/report/number_text.h"

#include <cmath>

#include <fmt/format.h>

namespace siamese::report {

std::string spread_text(const ResultGroup& group, const MeanSpread& value, double scale, int decimals,
                        const char* unit) {
  if (value.count == 0) return "-";
  // A loss that broke without becoming infinite would be a row of digits.
  const auto text = [&](double number) {
    return std::fabs(number) < 1e6 ? fmt::format("{:.{}f}", number, decimals) : fmt::format("{:.3e}", number);
  };
  std::string shown = text(value.mean * scale);
  if (value.count > 1) shown += " +- " + text(value.spread * scale);
  shown += unit;
  if (!group.partial && value.count < group.runs.size() && group.diverged > 0) {
    shown += fmt::format(" ({} of {})", value.count, group.runs.size());
  }
  return shown + (group.partial ? "*" : "");
}

std::string loss_text(const ResultGroup& group) { return spread_text(group, group.val_loss, 1, 4, ""); }

std::string rate_text(double lr) { return std::isfinite(lr) ? fmt::format("{:g}", lr) : "-"; }

}  // namespace siamese::report
