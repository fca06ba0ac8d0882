#include "siamese/train/tasks.h"

#include "siamese/base/check.h"
#include "siamese/eval/task_requests.h"
#include "siamese/train/config_origin.h"

namespace siamese::train {

std::optional<eval::Tasks> open_tasks(const RunConfig& config) {
  if (config.eval.tasks.empty() || config.model.sees_images()) return std::nullopt;
  std::vector<std::filesystem::path> folders;
  for (const std::string& folder : config.eval.tasks) folders.emplace_back(located(config, folder));
  try {
    eval::Tasks tasks(folders, located(config, config.eval.tokenizer), {.limit = config.eval.task_limit});
    // What cannot be asked is found before the first step, not after the last.
    for (const eval::TaskSet& set : tasks.sets()) eval::encode_requests(tasks, set, config.model);
    return tasks;
  } catch (const DataError& error) {
    throw DataError(std::string("eval.tasks: ") + error.what());
  }
}

}  // namespace siamese::train
