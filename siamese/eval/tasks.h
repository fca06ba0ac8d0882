// Downstream tasks: a language model asked the questions of OLMo's request sets (docs/tasks.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "siamese/comm/group.h"
#include "siamese/eval/task_set.h"
#include "siamese/models/lm.h"
#include "siamese/runs/task_record.h"
#include "siamese/text/tokenizer.h"

namespace siamese::eval {

struct TaskOptions {
  int64_t limit = 0;      // only the first so many documents of a set; 0: all
  bool generate = false;  // answers in words also where the set is reported by how likely the right one is
};

// The sets that are asked and the tokenizer that turns them into ids.
class Tasks {
 public:
  // `folders`: sets, or folders with sets below them. `tokenizer`: a tokenizer.json, or a folder that has one.
  // DataError naming what is wrong with a file; UsageError when two sets have one name.
  Tasks(const std::vector<std::filesystem::path>& folders, const std::filesystem::path& tokenizer,
        TaskOptions options = {});

  const std::vector<TaskSet>& sets() const { return sets_; }
  const text::Tokenizer& tokenizer() const { return *tokenizer_; }
  // None: only stop sequences and the length end an answer.
  std::optional<int64_t> end_of_text() const { return end_of_text_; }
  const TaskOptions& options() const { return options_; }

 private:
  TaskOptions options_;
  std::unique_ptr<const text::Tokenizer> tokenizer_;  // stays where it is when this moves
  std::optional<int64_t> end_of_text_;
  std::vector<TaskSet> sets_;
};

class TaskObserver {
 public:
  virtual ~TaskObserver() = default;
  // Requests of the set that are answered, of all.
  virtual void progressed(const TaskSet&, int64_t /*done*/, int64_t /*all*/) {}
  virtual bool stop() { return false; }  // true: what is done stays in its file
};

// What the model scores in one set; nullopt when the observer stopped it. With a `folder`, scores are kept there as
// they are made and those that it has of the same weights, tokenizer and set are not made again. It has to be there:
// one that was removed meanwhile, with the run it was in, is not made again in the run that took its place
// (SystemError). `group`: ranks that share the requests; all of them call it, each with the same weights, and get the
// same, to the bit what one process gets. Rank 0 alone keeps scores; the observer of any rank stops them all.
std::optional<runs::TaskRecord> evaluate_task(const models::LanguageModel& model, const Tasks& tasks,
                                              const TaskSet& set, const std::filesystem::path& folder,
                                              TaskObserver& observer, comm::Group* group = nullptr);

// XXH3 of all weights: what scores are kept by.
uint64_t weights_hash(const models::Model& model);

// "piqa/rc_0shot" -> "piqa_rc_0shot.jsonl"
std::string scores_file_name(const std::string& task);

}  // namespace siamese::eval
