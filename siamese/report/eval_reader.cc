#include "siamese/report/eval_reader.h"

#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/report/json_fields.h"

namespace siamese::report {

namespace {

using nlohmann::json;

void read_share(const json& classification, const char* name, Measures& measures) {
  const json& answers = object_or_empty(classification, name);
  const int64_t correct = integer_or(answers, "correct", -1), count = integer_or(answers, "count", 0);
  if (count > 0 && correct >= 0 && correct <= count) {
    measures[name] = static_cast<double>(correct) / static_cast<double>(count);
  }
}

bool is_count(const json& value) { return value.is_number_integer() && value.get<int64_t>() >= 0; }

// Why the matrix cannot be shown; "" when it can.
std::string read_counts(const json& matrix, std::vector<std::vector<int64_t>>& counts) {
  const size_t classes = matrix.size();
  if (classes > kClassLimit) return fmt::format("expected at most {} classes, got {}", kClassLimit, classes);
  for (const json& line : matrix) {
    if (!line.is_array() || line.size() != classes) {
      return fmt::format("expected {} rows of {} counts each, got a row of {}", classes, classes, line.size());
    }
    auto& row = counts.emplace_back();
    for (const json& value : line) {
      if (!is_count(value)) return "expected counts, got something else";
      row.push_back(value.get<int64_t>());
    }
  }
  return "";
}

// Names as the file has them; numbers when it has none, or not one for each row.
std::vector<std::string> class_names(const json& names, size_t classes) {
  std::vector<std::string> read;
  for (size_t at = 0; at < classes; ++at) {
    const bool named = names.size() == classes && names[at].is_string();
    read.push_back(named ? names[at].get<std::string>() : std::to_string(at));
  }
  return read;
}

std::string read_classification(const json& object, EvalRow& row) {
  const json& classification = object_or_empty(object, "classification");
  read_share(classification, "top1", row.measures);
  read_share(classification, "top5", row.measures);
  const json& matrix = array_or_empty(classification, "confusion");
  if (matrix.empty()) return "";
  Confusion confusion;
  const std::string problem = read_counts(matrix, confusion.counts);
  if (!problem.empty()) return problem;
  confusion.classes = class_names(array_or_empty(classification, "classes"), matrix.size());
  row.confusion = std::move(confusion);
  return "";
}

void read_samples(const json& object, EvalRow& row) {
  const json& drawn = object_or_empty(object, "samples");
  row.measures.merge(read_measures(object_or_empty(object, "diffusion")));
  row.measures.merge(read_measures(drawn));
  if (drawn.empty()) return;
  row.samples = Samples{.count = integer_or(drawn, "count", 0),
                        .steps = integer_or(drawn, "steps", 0),
                        .guidance = number_or(drawn, "guidance"),
                        .sampler = text_or(drawn, "sampler"),
                        .classifier = text_or(drawn, "classifier"),
                        .grid = text_or(drawn, "grid"),
                        .png = ""};
}

}  // namespace

void read_evals(const std::filesystem::path& path, RunRecord& run) {
  std::string problem;  // the latest: one note tells as much as a hundred
  for_each_object(path, run.notes, [&](const json& object) {
    EvalRow row;
    row.step = integer_or(object, "step", 0);
    row.loss = number_or(object, "loss");
    read_accuracy(object, row);
    const std::string wrong = read_classification(object, row);
    if (!wrong.empty()) problem = fmt::format("{}: step {}: confusion: {}; not shown", path.string(), row.step, wrong);
    read_samples(object, row);
    while (!run.evals.empty() && run.evals.back().step >= row.step) run.evals.pop_back();
    if (row.confusion) {
      for (EvalRow& older : run.evals) older.confusion.reset();
    }
    run.evals.push_back(std::move(row));
  });
  if (!problem.empty()) run.notes.push_back(problem);
}

}  // namespace siamese::report
