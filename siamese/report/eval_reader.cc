#include "siamese/report/eval_reader.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "siamese/runs/lines.h"

namespace siamese::report {

namespace {

// Names as the file has them; numbers when it has none, or not one for each row.
std::vector<std::string> class_names(const std::vector<std::string>& names, size_t classes) {
  if (names.size() == classes) return names;
  std::vector<std::string> numbered;
  for (size_t at = 0; at < classes; ++at) numbered.push_back(std::to_string(at));
  return numbered;
}

void take_confusion(runs::ClassificationRecord& result, EvalRow& row, const std::string& where, runs::Notes& notes) {
  const size_t classes = result.confusion.size();
  if (classes == 0) return;
  if (classes > kClassLimit) {
    notes.push_back(fmt::format("{}: classification: confusion: expected at most {} classes, got {}; not shown", where,
                                kClassLimit, classes));
    return;
  }
  row.confusion = Confusion{class_names(result.classes, classes), std::move(result.confusion)};
}

void take_prompts(std::vector<runs::PromptRecord>& prompts, EvalRow& row, const std::string& where,
                  runs::Notes& notes) {
  if (prompts.size() > kPromptLimit) {
    notes.push_back(fmt::format("{}: prompts: expected at most {}, got {}; the others are not shown", where,
                                kPromptLimit, prompts.size()));
    prompts.resize(kPromptLimit);
  }
  row.prompts = std::move(prompts);
}

// A page is read by people: what is past the limit is left out, the oldest first.
void limit_prompts(std::vector<EvalRow>& evals) {
  size_t bytes = 0;
  for (auto row = evals.rbegin(); row != evals.rend(); ++row) {
    for (const runs::PromptRecord& made : row->prompts) bytes += made.prompt.size() + made.text.size();
    if (bytes > kPromptBytes) row->prompts.clear();
  }
}

}  // namespace

EvalRow row_of(const runs::EvalRecord& record) {
  EvalRow row;
  row.step = record.step;
  row.loss = record.loss;
  row.baseline = record.baseline;
  row.measures = measures_of(record.measures());
  row.sets = record.sets;
  row.tasks = record.tasks;
  if (record.accuracy) {
    row.correct = record.accuracy->correct;
    row.count = record.accuracy->count;
    row.groups = record.accuracy->groups;
  }
  if (const auto& drawn = record.samples) {
    row.samples = Samples{.count = drawn->count,
                          .steps = drawn->steps,
                          .guidance = drawn->guidance,
                          .sampler = drawn->sampler,
                          .classifier = drawn->classifier,
                          .grid = drawn->grid,
                          .png = ""};
  }
  return row;
}

void read_evals(const std::filesystem::path& path, RunRecord& run) {
  const auto take = [&](std::string_view line, const std::string& where, runs::Notes* notes) {
    runs::EvalRecord record = runs::read_eval(line, where, notes);
    EvalRow row = row_of(record);
    if (record.classification) take_confusion(*record.classification, row, where, *notes);
    take_prompts(record.prompts, row, where, *notes);
    while (!run.evals.empty() && run.evals.back().step >= row.step) run.evals.pop_back();
    if (row.confusion) {
      for (EvalRow& older : run.evals) older.confusion.reset();
    }
    run.evals.push_back(std::move(row));
  };
  runs::for_each_line(path, take, &run.notes);
  limit_prompts(run.evals);
}

}  // namespace siamese::report
