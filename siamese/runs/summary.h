// What came of a run that ended, read from its directory: a few numbers and a curve short enough to stand in a line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "siamese/runs/eval_record.h"
#include "siamese/runs/numbers.h"
#include "siamese/runs/run_info.h"

namespace siamese::runs {

// Means over stretches of steps: the first ten steps one by one (there the loss falls fastest), then at most fifty
// pieces of equal length. Piece i ends at last_step[i] and begins where the one before it ended.
struct ThinnedCurve {
  std::vector<int64_t> last_step;
  std::vector<double> loss, grad_norm;  // NaN: no step of the piece was finite
};

struct RunSummary {
  RunStatus status = RunStatus::finished;
  std::string message;  // why it diverged
  int64_t parameters = 0;
  int64_t steps = 0;          // done
  double step_flops = kNone;  // of one, forward and backward
  double first_loss = kNone;  // of step 1
  double train_loss = kNone;  // mean of the last 50 steps
  int64_t eval_step = 0;      // the last evaluation; 0: there was none
  double val_loss = kNone;
  double perplexity = kNone;
  double baseline = kNone;
  std::optional<Accuracy> accuracy;
  NamedNumbers measures;        // what else its family is judged by, of the last evaluation and step
  double seconds = kNone;       // sum of the step times
  double step_ms = kNone;       // median, without the first step
  double tokens_per_s = kNone;  // the same
  double samples_per_s = kNone;
  ThinnedCurve curve;
};

// DataError when a file of the run is missing or broken, or the run has not ended.
RunSummary summarise_run(const std::filesystem::path& run_dir);

ThinnedCurve thin_curve(const std::vector<double>& loss, const std::vector<double>& grad_norm);

}  // namespace siamese::runs
