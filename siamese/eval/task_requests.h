// The questions of a set as the model reads them: tokens.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "siamese/eval/likelihood.h"
#include "siamese/eval/task_set.h"
#include "siamese/eval/tasks.h"

namespace siamese::eval {

// Log-likelihoods that are asked for, by OLMo's rules: context and continuation are encoded apart and without special
// tokens, what the tokenizer begins a text with (<s>) comes before the context unless it stands there, and " " alone is
// the context of `domain`.
struct TaskPart {
  std::string name;
  std::vector<size_t> documents;  // of the set, one for each group
  std::vector<QueryGroup> groups;
};

struct TaskRequests {
  std::vector<TaskPart> parts;
  std::vector<size_t> asked;                       // documents; the others have a choice that does not fit the context
  std::vector<std::vector<int64_t>> token_counts;  // of the continuations of each asked document

  int64_t count() const;
};

// DataError naming file and line: no token in a text, or one that the model does not have.
TaskRequests encode_requests(const Tasks& tasks, const TaskSet& set, const models::ModelConfig& model);

// The prompt of a generated answer: its last tokens, so that there is room to answer.
std::vector<int64_t> encode_prompt(const Tasks& tasks, const TaskSet& set, const TaskDocument& document,
                                   const models::ModelConfig& model);

}  // namespace siamese::eval
