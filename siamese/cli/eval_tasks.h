// `siamese eval RUN --tasks ...`: a language model asked the questions of request sets.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "siamese/comm/group.h"
#include "siamese/train/checkpoint.h"

namespace siamese::cli {

struct TaskArguments {
  std::vector<std::string> tasks;  // folders, or lists of configs/tasks
  std::string sets;                // the folder that a list's entries lie in
  std::string tokenizer;           // "": a tokenizer.json beside the weights
  std::string out;                 // "": tasks/ in the run, MODEL.tasks beside weights alone
  int64_t limit = 0;
  bool generate = false;
  bool json = false;
};

// Prints a table, or with `json` a line as eval.jsonl has them. Returns the exit code: 0, or 128 + the signal that
// stopped it. `group`: ranks that share the requests, null when there is one process. Rank 0 alone writes and speaks;
// it calls `ready` when nothing is left to refuse.
int evaluate_tasks(const train::LoadedModel& loaded, const TaskArguments& arguments, bool averaged, comm::Group* group,
                   const std::function<void()>& ready);

}  // namespace siamese::cli
