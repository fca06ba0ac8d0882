#include "siamese/train/tasks.h"

#include "siamese/base/check.h"
#include "siamese/eval/task_requests.h"
#include "siamese/train/config_origin.h"

namespace siamese::train {

std::optional<eval::Tasks> open_tasks(const RunConfig& config, const RunTokenizer& own) {
  if (config.eval.tasks.empty() || config.model.sees_images()) return std::nullopt;
  const bool named = !config.eval.tokenizer.empty();
  if (!named && !own.there()) {
    throw UsageError("eval.tokenizer: expected a tokenizer.json for eval.tasks, got none, and the run has none");
  }
  std::vector<std::filesystem::path> folders;
  for (const std::string& folder : config.eval.tasks) folders.emplace_back(located(config, folder));
  try {
    const std::filesystem::path tokenizer =
        named ? std::filesystem::path(located(config, config.eval.tokenizer)) : own.path;
    eval::Tasks tasks(folders, tokenizer, {.limit = config.eval.task_limit});
    // What cannot be asked is found before the first step, not after the last.
    for (const eval::TaskSet& set : tasks.sets()) eval::encode_requests(tasks, set, config.model);
    return tasks;
  } catch (const DataError& error) {
    throw DataError(std::string("eval.tasks: ") + error.what());
  }
}

}  // namespace siamese::train
