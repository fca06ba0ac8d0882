#include "siamese/report/recorded.h"

#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/io/json_lines.h"
#include "siamese/io/strict_json.h"
#include "siamese/report/json_fields.h"

namespace siamese::report {

namespace {

using nlohmann::json;

double number_at(const json& list, size_t at) {
  return at < list.size() && list[at].is_number() ? list[at].get<double>() : kMissing;
}

int64_t planned_steps(const RunRecord& run) {
  for (const auto& [key, text] : run.config) {
    int64_t steps = 0;
    if (key == "train.steps" && std::from_chars(text.data(), text.data() + text.size(), steps).ec == std::errc()) {
      return steps;
    }
  }
  return run.step;
}

RunRecord parse_line(const json& line, const std::string& where) {
  RunRecord run;
  run.dir = text_or(line, "dir");
  if (integer_or(line, "schema", 0) != 1) throw DataError(where + ": schema: expected 1");
  if (run.dir.empty()) throw DataError(where + ": dir: expected the name of a run");
  run.state = state_from_text(text_or(line, "status"));
  if (run.state != RunState::finished && run.state != RunState::diverged) {
    throw DataError(where + ": status: expected finished or diverged, got '" + text_or(line, "status") + "'");
  }
  run.variant = run.label = text_or(line, "variant");
  run.scheme = text_or(line, "scheme");
  run.message = text_or(line, "message");
  run.lr = number_or(line, "lr");
  run.seed = integer_or(line, "seed", -1);
  run.step = integer_or(line, "steps", 0);
  run.parameters = integer_or(line, "parameters", 0);
  for (const auto& [key, value] : object_or_empty(line, "config").items()) {
    if (value.is_string()) run.config.emplace_back(key, value.get<std::string>());
  }
  for (const auto& [key, text] : run.config) run.config_text += key + ": " + text + "\n";
  run.steps = planned_steps(run);
  run.family = family_of(run.config);

  EvalRow last{integer_or(line, "eval_step", 0), number_or(line, "val_loss"), 0, 0, {}};
  read_accuracy(line, last);
  last.measures = read_measures(object_or_empty(line, "measures"));
  if (last.step > 0) run.evals.push_back(std::move(last));

  run.recorded = RecordedNumbers{.first_loss = number_or(line, "first_loss"),
                                 .train_loss = number_or(line, "train_loss"),
                                 .tokens_per_s = number_or(line, "tokens_per_s"),
                                 .seconds = number_or(line, "seconds"),
                                 .samples_per_s = number_or(line, "samples_per_s"),
                                 .measures = read_measures(object_or_empty(line, "measures"))};
  const json& curve = object_or_empty(line, "curve");
  const json& steps = array_or_empty(curve, "steps");
  for (size_t at = 0; at < steps.size(); ++at) {
    const int64_t step = steps[at].is_number_integer() ? steps[at].get<int64_t>() : 0;
    if (step <= (run.metrics.step.empty() ? 0 : run.metrics.step.back())) {
      throw DataError(where + ": curve: steps: expected ascending whole numbers");
    }
    run.metrics.step.push_back(step);
    for (const StepColumn& column : step_columns()) {
      (run.metrics.*column.values).push_back(number_at(array_or_empty(curve, column.key), at));
    }
  }
  return run;
}

}  // namespace

std::map<std::string, RunRecord> read_recorded(const std::filesystem::path& file) {
  std::map<std::string, RunRecord> runs;
  if (!is_there(file)) return runs;
  size_t number = 0;
  for (const std::string& line : io::read_json_lines(file)) {
    const std::string where = fmt::format("{}: line {}", file.string(), ++number);
    RunRecord run = parse_line(io::read_json(line, where), where);
    const std::string dir = run.dir;
    runs.emplace(dir, std::move(run));
  }
  return runs;
}

}  // namespace siamese::report
