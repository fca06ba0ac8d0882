// A set of questions as OLMo publishes them: a folder with requests.jsonl (or .gz, .zst) and, if it has one,
// config.json. A line is one request:
//   {"request_type": "loglikelihood", "doc_id": 7, "idx": 0, "label": 2,
//    "request": {"context": "Question: ...\nAnswer:", "continuation": " a cat"}}
// Requests of one doc_id are one document: the continuation `idx` is one choice of it. label is the index of the right
// choice, or, where nothing is to be chosen, the right answers in words (text, a list of texts, or null) beside one
// continuation that is to be likely. A doc_id from 1,000,000 on is document doc_id - 1,000,000 with a context that does
// not ask the question: how likely its continuations are by themselves.
// config.json: task_name, and the metric that its authors report (task_config.primary_metric).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace siamese::eval {

struct TaskChoice {
  std::string context;
  std::string continuation;
  uint64_t line = 0;  // of the file
};

struct TaskDocument {
  int64_t id = 0;
  std::vector<TaskChoice> choices;        // by their index; empty where only an answer is to be generated
  std::vector<TaskChoice> unconditional;  // the same choices without the question, or empty
  std::optional<int64_t> label;           // the right choice; none: see answers
  std::vector<std::string> answers;       // what a generated answer may be
  uint64_t line = 0;                      // its first

  // Of a generated answer; max_tokens 0: none is asked for.
  std::string prompt;
  std::vector<std::string> stop;
  int64_t max_tokens = 0;
};

struct TaskSet {
  std::string name;            // "piqa/rc_0shot"
  std::filesystem::path file;  // the requests
  std::string primary;         // a metric of task_metrics.h; "" when config.json does not say
  bool of_choices = true;      // the labels are indices
  bool generates = false;      // an answer in words is asked for, not only how likely the right one is
  std::vector<TaskDocument> documents;
  // Documents whose choices are not complete, as a file that was cut has them, are left out.
  int64_t incomplete = 0;
  uint64_t hash = 0;  // XXH3 of what the set says

  bool has_unconditional() const;
};

// The folders that hold requests: `folder` itself, or all below it, by name. DataError when there is none.
std::vector<std::filesystem::path> find_task_sets(const std::filesystem::path& folder);

// DataError naming file and line. `limit`: only the first so many documents (0: all).
TaskSet read_task_set(const std::filesystem::path& folder, int64_t limit = 0);
// The same of files wherever they lie, in a folder called `folder_name`; `config` need not be there.
TaskSet read_task_files(const std::filesystem::path& requests, const std::filesystem::path& config,
                        const std::string& folder_name, int64_t limit = 0);

}  // namespace siamese::eval
