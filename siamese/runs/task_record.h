// What a language model scored in a set of questions (eval.jsonl), and the scores of its requests while they are made
// (tasks/step{N}/NAME.jsonl), from which an evaluation that was interrupted goes on (docs/tasks.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "siamese/runs/numbers.h"

namespace siamese::runs {

struct TaskRecord {
  std::string name;
  std::string primary;    // the metric that the set is reported by; "": it does not say
  int64_t documents = 0;  // asked
  int64_t left_out = 0;   // not asked: a choice is missing, or does not fit into the context
  NamedNumbers metrics;   // docs/tasks.md

  double primary_value() const { return number_of(metrics, primary); }  // NaN when it was not measured
};

nlohmann::ordered_json to_json(const TaskRecord& task);
TaskRecord read_task(const nlohmann::ordered_json& object, const std::string& where);

// What the scores of a file are of: those of anything else are not to be mixed with them.
struct ScoresHead {
  std::string task;
  uint64_t set = 0, tokenizer = 0, weights = 0;  // hashes
  int64_t limit = 0, context = 0;
  bool operator==(const ScoresHead&) const = default;
};

// One batch: for each document its numbers, one a choice, or its text.
struct ScoresLine {
  std::string part;  // "choices", "unconditional", "domain", "answers"
  std::vector<int64_t> documents;
  std::vector<std::vector<double>> numbers;
  std::vector<std::string> texts;
};

std::string to_line(const ScoresHead& head);
std::string to_line(const ScoresLine& line);

struct Scores {
  ScoresHead head;
  std::vector<ScoresLine> lines;
};
// nullopt when there is no such file or it has no head. A torn last line is passed over; DataError for any other that
// cannot be read.
std::optional<Scores> read_scores(const std::filesystem::path& file);

}  // namespace siamese::runs
