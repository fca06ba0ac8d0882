#include "siamese/report/per_step.h"

#include <cmath>
#include <cstdlib>
#include <utility>

#include "siamese/config/value.h"
#include "siamese/report/statistics.h"

namespace siamese::report {

namespace {

double config_number(const RunRecord& run, const char* key) {
  const std::string* const text = config::find_text(run.config, key);
  if (text == nullptr || text->empty()) return kMissing;
  char* end = nullptr;
  const double value = std::strtod(text->c_str(), &end);
  return *end == '\0' && value > 0 ? value : kMissing;
}

}  // namespace

PerStep per_step(const RunRecord& run) {
  PerStep step;
  step.samples = config_number(run, "train.batch");
  step.tokens = step.samples * config_number(run, "model.context");
  step.flops = run.step_flops > 0 ? run.step_flops : kMissing;
  const auto steps = static_cast<double>(run.recorded ? run.step : static_cast<int64_t>(run.metrics.step.size()));
  step.seconds = steps > 0 && run.seconds() > 0 ? run.seconds() / steps : kMissing;
  return step;
}

PerStep median_per_step(const std::vector<PerStep>& runs) {
  PerStep result;
  for (double PerStep::*const member : {&PerStep::samples, &PerStep::tokens, &PerStep::flops, &PerStep::seconds}) {
    std::vector<double> values;
    for (const PerStep& run : runs) {
      if (std::isfinite(run.*member)) values.push_back(run.*member);
    }
    result.*member = median(std::move(values));
  }
  return result;
}

}  // namespace siamese::report
