#include "siamese/runs/outcome.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "siamese/io/run_dir.h"
#include "siamese/runs/eval_record.h"
#include "siamese/runs/lines.h"
#include "siamese/runs/step_record.h"

namespace siamese::runs {

Course course_of(const std::vector<double>& losses, bool from_scratch) {
  if (losses.empty()) return {.from_scratch = from_scratch};
  return {.steps = static_cast<int64_t>(losses.size()),
          .first_loss = losses.front(),
          .train_loss = mean_of_last(losses),
          .ends_finite = std::isfinite(losses.back()),
          .from_scratch = from_scratch};
}

Course read_course(const std::filesystem::path& run_dir, bool from_scratch) {
  Notes damage;  // said by whoever reads the run for people
  std::vector<double> losses;
  for_each_line(
      run_dir / io::kMetricsFile,
      [&](std::string_view line, const std::string& where, Notes* notes) {
        losses.push_back(read_step(line, where, notes).loss);
      },
      &damage);
  EvalRecord last;
  for_each_line(
      run_dir / io::kEvalFile,
      [&](std::string_view line, const std::string& where, Notes* notes) { last = read_eval(line, where, notes); },
      &damage);
  Course course = course_of(losses, from_scratch);
  if (last.targets > 0 && !std::isfinite(last.loss)) course.ends_finite = false;
  return course;
}

std::string divergence(const Course& course) {
  if (!course.ends_finite) return fmt::format("not finite at its end, step {}", course.steps);
  const auto window = static_cast<int64_t>(kLossWindow);
  const bool is_short = course.steps <= window;  // the first step is one of the last
  const double most = is_short ? 2 * course.first_loss : course.first_loss;
  if (!course.from_scratch || !(course.train_loss > most)) return "";
  return fmt::format("loss {:.4g} at the end (mean of the last {} steps) is above {}the first, {:.4g}",
                     course.train_loss, std::min(course.steps, window), is_short ? "twice " : "", course.first_loss);
}

bool starts_from_scratch(const config::Texts& config) {
  const std::string* const from = config::find_text(config, "init.from");
  return from == nullptr || from->empty() || *from == "\"\"" || *from == "''";
}

}  // namespace siamese::runs
