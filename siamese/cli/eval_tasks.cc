#include "siamese/cli/eval_tasks.h"

#include <cmath>
#include <cstdio>
#include <optional>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/base/duration.h"
#include "siamese/base/path_kind.h"
#include "siamese/cli/paths.h"
#include "siamese/cli/progress_line.h"
#include "siamese/cli/signals.h"
#include "siamese/cli/table.h"
#include "siamese/config/fields.h"
#include "siamese/config/load.h"
#include "siamese/config/yaml.h"
#include "siamese/eval/tasks.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/directory_lock.h"
#include "siamese/io/json_lines.h"
#include "siamese/io/run_dir.h"
#include "siamese/runs/eval_record.h"
#include "siamese/runs/same_run.h"

namespace siamese::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTokenizerFile = "tokenizer.json";

// configs/tasks/NAME.yaml: which sets belong together.
struct TaskList {
  std::vector<std::string> sets;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("sets", self.sets, "folders below that of the sets");
  }
};

class TaskProgress : public eval::TaskObserver {
 public:
  explicit TaskProgress(bool shown) : shown_(shown) {}
  void progressed(const eval::TaskSet& set, int64_t done, int64_t all) override {
    if (!shown_) return;
    if (done == 0) line_.restart();
    if (!line_.due()) return;
    const double left = done > 0 ? line_.seconds() / static_cast<double>(done) * static_cast<double>(all - done) : 0;
    line_.show(fmt::format("{}: {} of {} requests, {} left", set.name, done, all, duration_text(left)));
  }
  bool stop() override { return caught_signal() != 0; }
  void clear() { line_.clear(); }

 private:
  bool shown_;
  ProgressLine line_;
};

// A folder of sets is meant as it is; anything else is a list of sets.
std::vector<fs::path> folders_of(const TaskArguments& arguments) {
  std::vector<fs::path> folders;
  for (const std::string& named : arguments.tasks) {
    if (is_folder(named)) {
      folders.emplace_back(named);
      continue;
    }
    std::vector<fs::path> lists;
    for (const fs::path& folder : config_folders()) lists.push_back(folder / io::kTasksFolder);
    TaskList list;
    config::read(config::load(named, {}, lists), "", list);
    if (list.sets.empty()) throw UsageError(named + ": sets: expected a list of folders, got none");
    if (arguments.sets.empty()) {
      throw UsageError("--sets: expected the folder with the sets that " + named + " lists, got none");
    }
    for (const std::string& set : list.sets) folders.push_back(fs::path(arguments.sets) / set);
  }
  return folders;
}

// Without a slash at its end, and from the root: its parent is the folder it lies in.
fs::path whole_path(const fs::path& path) {
  const fs::path whole = fs::absolute(path).lexically_normal();
  return whole.has_filename() ? whole : whole.parent_path();
}

fs::path tokenizer_of(const TaskArguments& arguments, const fs::path& checkpoint) {
  if (!arguments.tokenizer.empty()) return arguments.tokenizer;
  const fs::path folder = whole_path(checkpoint);
  for (const fs::path& place : {folder, folder.parent_path()}) {
    if (is_file(place / kTokenizerFile)) return place / kTokenizerFile;
  }
  throw UsageError("--tokenizer: expected a tokenizer.json: " + checkpoint.string() + " has none");
}

// Of a run's checkpoint tasks/step{N} of the run; else beside the folder of the weights, which holds nothing else.
fs::path scores_folder(const TaskArguments& arguments, const fs::path& checkpoint) {
  if (!arguments.out.empty()) return arguments.out;
  const fs::path folder = whole_path(checkpoint);
  const fs::path run = folder.parent_path();
  if (is_file(run / io::kRunFile)) return run / io::kTasksFolder / folder.filename();
  return run / (folder.filename().string() + ".tasks");
}

std::string metric_text(const runs::TaskRecord& task, const char* name) {
  const double value = runs::number_of(task.metrics, name);
  return std::isfinite(value) ? fmt::format("{:.4f}", value) : "";
}

void print_table(const std::vector<runs::TaskRecord>& tasks) {
  std::vector<std::vector<std::string>> rows = {
      {"task", "documents", "left out", "metric", "value", "acc", "len_norm", "acc_uncond", "bpb", "exact_match"}};
  double sum = 0;
  int64_t accuracies = 0;
  for (const runs::TaskRecord& task : tasks) {
    const double value = task.primary_value();
    rows.push_back({task.name, std::to_string(task.documents), std::to_string(task.left_out), task.primary,
                    std::isfinite(value) ? fmt::format("{:.4f}", value) : "", metric_text(task, "acc"),
                    metric_text(task, "len_norm"), metric_text(task, "acc_uncond"), metric_text(task, "bpb"),
                    metric_text(task, "exact_match")});
    if (!std::isfinite(value) || task.primary == "bpb") continue;
    sum += value;
    ++accuracies;
  }
  if (accuracies > 1) {
    rows.push_back({"mean", "", "", "", fmt::format("{:.4f}", sum / static_cast<double>(accuracies))});
  }
  std::printf("%s", text_table(rows).c_str());
}

void report_tasks(const train::LoadedModel& loaded, const TaskArguments& arguments, const fs::path& folder,
                  const runs::EvalRecord& record) {
  const std::string line = runs::to_line(record);
  io::JsonLinesWriter::open(folder / io::kEvalFile, io::JsonLinesWriter::Mode::append).write(line);
  if (arguments.json) {
    std::printf("%s\n", line.c_str());
    return;
  }
  std::printf("%s: %s, step %lld\n", loaded.checkpoint.c_str(), loaded.config.model.residual.c_str(),
              static_cast<long long>(loaded.step));
  print_table(record.tasks);
}

}  // namespace

int evaluate_tasks(const train::LoadedModel& loaded, const TaskArguments& arguments, bool averaged, comm::Group* group,
                   const std::function<void()>& ready) {
  const auto* const lm = dynamic_cast<const models::LanguageModel*>(loaded.model.get());
  if (lm == nullptr) {
    throw UsageError("--tasks: expected a language model, got one of family " +
                     std::string(enum_text(loaded.config.model.family)));
  }
  const eval::Tasks tasks(folders_of(arguments), tokenizer_of(arguments, loaded.checkpoint),
                          {.limit = arguments.limit, .generate = arguments.generate});
  const bool leads = group == nullptr || group->leads();
  const fs::path folder = scores_folder(arguments, loaded.checkpoint);
  std::optional<io::DirectoryLock> lock;
  const runs::SameRun same(loaded.checkpoint);
  if (leads) {
    io::make_directory(folder);
    lock.emplace(folder);
    same.check(folder);
    ready();
  }
  catch_signals();
  TaskProgress progress(leads);
  runs::EvalRecord record;
  record.step = loaded.step;
  record.averaged = averaged;
  for (const eval::TaskSet& set : tasks.sets()) {
    if (leads) same.check();
    auto task = eval::evaluate_task(*lm, tasks, set, folder, progress, group);
    progress.clear();
    if (!task && !leads) return 0;
    if (!task) {
      std::fprintf(stderr, "siamese: stopped in %s; the same command goes on from here\n", set.name.c_str());
      return caught_signal() != 0 ? 128 + caught_signal() : static_cast<int>(Exit::resumable);  // another rank's
    }
    if (leads && !arguments.json) {
      std::fprintf(stderr, "%s: %s %.4f of %lld documents\n", task->name.c_str(), task->primary.c_str(),
                   task->primary_value(), static_cast<long long>(task->documents));
    }
    record.tasks.push_back(std::move(*task));
  }
  if (!leads) return 0;
  same.check();
  report_tasks(loaded, arguments, folder, record);
  return 0;
}

}  // namespace siamese::cli
