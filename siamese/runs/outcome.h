// The rule of "diverged" for a run that took all its steps, one for whoever trains and whoever reads:
//   - its last step, or its last held-out loss, is not finite; or
//   - it started from scratch and the mean loss of its last 50 steps is above the loss of its first step: it is worse
//     than weights that were never trained. (A run that starts from trained weights may well end above them.) A run of
//     50 steps or fewer has hardly begun: there the mean of all steps has to be above twice the first loss.
// A run that ends early because of non-finite steps in a row (train.max_skips) has diverged before this is asked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "siamese/config/value.h"
#include "siamese/runs/numbers.h"

namespace siamese::runs {

struct Course {
  int64_t steps = 0;
  double first_loss = kNone;  // of step 1
  double train_loss = kNone;  // mean of the last kLossWindow steps
  bool ends_finite = true;    // the last step and the last held-out loss
  bool from_scratch = true;   // no init.from
};

// The course of a run whose training losses are given, step by step.
Course course_of(const std::vector<double>& losses, bool from_scratch);

// That of a run in its directory, as far as its files can be read.
Course read_course(const std::filesystem::path& run_dir, bool from_scratch);

// Why it has diverged; "" when it has not. The second rule says nothing where a number is missing.
std::string divergence(const Course& course);

// Whether a config names no checkpoint to start from.
bool starts_from_scratch(const config::Texts& config);

}  // namespace siamese::runs
