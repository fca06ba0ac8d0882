#include "siamese/plan/checkpoint_interval.h"

#include <algorithm>
#include <cmath>

namespace siamese::plan {

double best_interval_seconds(double write, double mean) {
  if (write >= 2 * mean) return mean;
  const double ratio = write / (2 * mean);
  return std::sqrt(2 * write * mean) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - write;
}

double lost_share(double interval, double write, double mean, double restart) {
  return std::min(1.0, write / interval + (interval / 2 + write + restart) / mean);
}

Saving saving(const Machine& machine, double checkpoint_bytes) {
  constexpr double kSecondsAnHour = 3600;
  Saving result;
  result.checkpoint_bytes = checkpoint_bytes;
  result.write_seconds = checkpoint_bytes / machine.disk_bytes_each_second;
  result.failure_seconds = machine.mean_hours_between_failures * kSecondsAnHour / static_cast<double>(machine.devices);
  result.interval_seconds = best_interval_seconds(result.write_seconds, result.failure_seconds);
  result.lost_share =
      lost_share(result.interval_seconds, result.write_seconds, result.failure_seconds, machine.restart_seconds);
  return result;
}

}  // namespace siamese::plan
