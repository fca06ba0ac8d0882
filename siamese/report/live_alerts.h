// What somebody who watches a run should look at. Each rule is a few numbers kept while lines come in (docs/watch.md):
//   spike     a loss more than kSpikeFactor mean deviations, and more than a tenth, above the running mean before it
//   skipped   steps whose update was skipped
//   plateau   over the last fifth of the steps (at least kPlateauSteps) the loss fell by less than a thousandth
//   collapse  the RMS of a stream at a site is below a fiftieth of the highest that it had there
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "siamese/report/live_curve.h"
#include "siamese/report/run_record.h"

namespace siamese::report {

struct Alert {
  std::string kind;  // spike, skipped, plateau, collapse; of a run as a whole also diverged, stopped, file
  int64_t step = 0;  // the newest that it is about
  std::string text;  // one line

  bool operator==(const Alert&) const = default;
};

class LiveAlerts {
 public:
  static constexpr double kSpikeFactor = 8;
  static constexpr double kSpikeShare = 0.1;
  static constexpr int64_t kSpikeWarmUp = 20;  // steps before the first judgement
  static constexpr int64_t kPlateauSteps = 200;
  static constexpr int64_t kPlateauWarmUp = 50;
  static constexpr double kPlateauFall = 1e-3;
  static constexpr double kCollapse = 1.0 / 50;

  void take(const runs::StepRecord& record);
  void clear() { *this = LiveAlerts(); }

  // `curve` is that of the run. A plateau is said of a run that is still running: at its end a schedule brings one
  // about.
  std::vector<Alert> alerts(const LiveCurve& curve, bool running) const;

 private:
  void judge_loss(const runs::StepRecord& record);
  void judge_streams(const runs::StepRecord& record);

  int64_t judged_ = 0;  // finite losses so far
  double mean_ = 0, deviation_ = 0;
  int64_t spikes_ = 0, spike_step_ = 0, last_high_ = 0;
  double spike_loss_ = 0, spike_before_ = 0;
  int64_t skipped_ = 0, skipped_step_ = 0;
  std::string skip_reason_;
  struct Highest {
    double rms = 0;
    int64_t step = 0;
  };
  std::map<std::pair<std::string, int64_t>, Highest> highest_;  // by stream and site
  std::map<std::string, Alert> collapsed_;                      // by stream, at the newest record
};

}  // namespace siamese::report
