#include "siamese/train/run.h"

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/io/aside.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/directory_lock.h"
#include "siamese/io/json_lines.h"
#include "siamese/io/run_dir.h"
#include "siamese/io/tensor_files.h"
#include "siamese/ops/operand.h"
#include "siamese/runs/lines.h"
#include "siamese/train/config_keys.h"
#include "siamese/train/ranks.h"
#include "siamese/train/run_folder.h"
#include "siamese/train/run_loop.h"
#include "siamese/train/trainer.h"

namespace siamese::train {
namespace fs = std::filesystem;
namespace {

// Without a checkpoint a run starts again from the beginning: right for one that was killed before its first, wrong for
// one whose checkpoints are gone.
void check_nothing_was_saved(const fs::path& dir, const runs::RunInfo& info, const RunHooks& hooks) {
  // 0.1.0 had no `saved`; while a run goes on, its `step` is that of the newest checkpoint.
  const int64_t saved = info.saved ? *info.saved : info.status != RunStatus::diverged ? info.step : 0;
  if (saved > 0) {
    throw DataError(dir.string() + ": " + std::string(io::kRunFile) + " says that step " + std::to_string(saved) +
                    " was saved, but there is no complete checkpoint and no '" + std::string(io::kLatestFile) +
                    "'; put them back, or start anew with train --overwrite");
  }
  if (hooks.observer == nullptr) return;
  const fs::path metrics = dir / io::kMetricsFile;
  const size_t steps = is_there(metrics) ? io::read_json_lines(metrics).size() : 0;
  hooks.observer->warned(dir.string() + ": it has no checkpoint yet: it starts again from the beginning" +
                         (steps > 0 ? ", and its " + std::to_string(steps) + " steps are made anew" : ""));
}

// A checkpoint that was copied or linked elsewhere belongs to no run there.
void check_is_in_its_run(const fs::path& checkpoint) {
  fs::path path = fs::absolute(checkpoint).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  if (!io::checkpoint_step(path.filename().string())) {
    throw DataError(checkpoint.string() + ": expected a checkpoint in its run, under its name (step500), to resume; " +
                    "init.from=" + checkpoint.string() + " starts a run from it");
  }
}

// A damaged line changes nothing in the training: it is said and stays as it is. Who makes a result of it refuses it.
void warn_of_damage(const fs::path& dir, const RunHooks& hooks) {
  if (hooks.observer == nullptr) return;
  runs::Notes notes;
  const auto read = [](auto reader) {
    return [reader](std::string_view line, const std::string& where, runs::Notes* of_line) {
      reader(line, where, of_line);
    };
  };
  runs::for_each_line(dir / io::kMetricsFile, read(runs::read_step), &notes);
  runs::for_each_line(dir / io::kEvalFile, read(runs::read_eval), &notes);
  for (const std::string& note : notes) hooks.observer->warned(note + "; training goes on");
}

runs::RunInfo read_own_run_file(const fs::path& dir, const RunHooks& hooks) {
  std::string reason;
  try {
    runs::Notes notes;
    const auto info = is_run(dir) ? runs::read_run_file(dir, &notes) : std::nullopt;
    if (hooks.observer != nullptr) {
      for (const std::string& note : notes) hooks.observer->warned(note);
    }
    if (info) return *info;
    runs::read_run_file(dir);
  } catch (const DataError& error) {
    reason = std::string(" (") + error.what() + ")";
  }
  throw DataError(dir.string() + ": not a run directory: it has no " + std::string(io::kRunFile) + " of ours" + reason +
                  ", so that nothing in it is touched");
}

}  // namespace

RunConfig kept_config(RunConfig asked) {
  std::string& judge = asked.eval.classifier;
  try {
    if (!judge.empty()) judge = io::resolve_checkpoint(judge).string();
  } catch (const DataError&) {
    // The model that should have been there is missed when it is loaded, with a line about it.
  }
  return asked;
}

static comm::Group* group_of(const RunHooks& hooks) { return hooks.ranks ? &hooks.ranks->group() : nullptr; }

static void warn_of_precision(const RunConfig& config, const RunHooks& hooks) {
  const std::string note = precision_note(config.engine);
  if (!note.empty() && hooks.observer != nullptr) hooks.observer->warned(note);
}

RunResult start_run(const RunConfig& asked, const fs::path& run_dir, bool overwrite, const std::string& label,
                    const RunHooks& hooks) {
  check_free(run_dir, overwrite);
  const ops::PrecisionGuard only_here(asked.engine.precision);
  apply_engine(asked.engine);
  const RunConfig config = kept_config(asked);
  Trainer trainer(config, false,
                  group_of(hooks));  // refuses bad data and impossible models before the directory is touched
  io::make_directory(run_dir);
  const io::DirectoryLock lock(run_dir);
  check_free(run_dir, overwrite);  // another run may have come and gone meanwhile
  clear_for_run(run_dir);
  warn_of_precision(config, hooks);
  runs::RunInfo info;
  info.id = new_run_id();
  info.label = label;
  info.folder = config.data.base.empty() ? fs::current_path().string() : config.data.base;
  info.says_set = config.given.has_value();
  info.set = config.given.value_or(std::vector<std::string>{});
  RunLoop run(trainer, run_dir, std::move(info), hooks);
  run.write_status(RunStatus::running);  // first: from here on the folder is known as a run
  io::write_file_atomic(run_dir / io::kConfigFile, config_text(config));
  if (trainer.tokenizer().there()) io::write_file_atomic(run_dir / io::kTokenizerFile, trainer.tokenizer().json);
  if (hooks.ranks != nullptr) hooks.ranks->start(trainer, run_dir, "");
  return run.train(io::JsonLinesWriter::Mode::replace);
}

RunResult resume_run(const fs::path& run_or_checkpoint, const RunHooks& hooks, bool accept_changed_data,
                     const std::vector<std::string>& overrides) {
  const bool is_checkpoint = is_there(run_or_checkpoint / io::kTrainerFile);
  const fs::path dir = is_checkpoint ? fs::absolute(run_or_checkpoint / "..").lexically_normal() : run_or_checkpoint;
  if (!is_there(dir / io::kConfigFile)) {
    throw DataError(dir.string() + ": not a run directory: " + std::string(io::kConfigFile) + " is missing");
  }
  if (!is_checkpoint && io::has_tensor_files(dir)) {
    throw DataError(dir.string() + ": nothing to resume: it holds weights without the state of a run (" +
                    std::string(io::kTrainerFile) + "); init.from=" + dir.string() + " starts a run from them");
  }
  if (is_checkpoint) check_is_in_its_run(run_or_checkpoint);
  const io::DirectoryLock lock(dir);
  const auto found = read_own_run_file(dir, hooks);
  io::remove_leftovers(dir);
  const bool begun = is_checkpoint || io::read_latest(dir) || !io::list_checkpoints(dir).empty();
  const RunConfig config = edited_config(read_config_file((dir / io::kConfigFile).string()), overrides);
  fs::path checkpoint;
  std::string edited;
  std::vector<std::string> edits;
  if (begun) {
    checkpoint = io::resolve_checkpoint(run_or_checkpoint, io::CheckpointUse::resume);
    const RunConfig then = read_config_file((checkpoint / io::kConfigFile).string());
    edited = check_edits(config, then, read_trainer_state(checkpoint / io::kTrainerFile), dir, checkpoint);
    edits = result_edits(config, then);
  } else {
    check_nothing_was_saved(dir, found, hooks);
  }
  const ops::PrecisionGuard only_here(config.engine.precision);
  apply_engine(config.engine);
  Trainer trainer(config, begun, group_of(hooks));
  const std::string changed = begun ? trainer.resume_from(checkpoint, accept_changed_data) : "";
  if (begun && trainer.state().step > config.train.steps) {
    throw UsageError("train.steps: expected " + std::to_string(trainer.state().step) +
                     " or more, which have been taken already, got " + std::to_string(config.train.steps));
  }
  trainer.note_edits(edits);
  if (!overrides.empty()) io::write_file_atomic(dir / io::kConfigFile, config_text(config));
  if (!changed.empty() && hooks.observer != nullptr) hooks.observer->warned(changed + "; accepted");
  if (!edited.empty() && hooks.observer != nullptr) hooks.observer->warned(edited);
  warn_of_precision(config, hooks);
  runs::RunInfo info = found;
  if (info.id.empty()) info.id = new_run_id();  // of 0.1.0
  std::error_code error;
  if (info.folder.empty() || !fs::is_directory(info.folder, error)) info.folder = fs::current_path().string();
  RunLoop run(trainer, dir, std::move(info), hooks);
  const bool unrecorded = !trainer.state().unrecorded.empty();
  if (trainer.finished() && !unrecorded && !run.owes_evaluation()) {
    run.tidy();
    return run.conclude();  // a kill may have come just before
  }
  const int64_t step = trainer.state().step;
  if (begun) io::write_latest(dir, io::checkpoint_name(step));  // an older checkpoint given by name is the newest now
  const int64_t recorded = unrecorded ? step - 1 : step;
  io::truncate_json_lines(dir / io::kMetricsFile, "step", recorded);
  io::truncate_json_lines(dir / io::kEvalFile, "step", recorded);
  const auto lines =
      static_cast<int64_t>(is_there(dir / io::kMetricsFile) ? io::read_json_lines(dir / io::kMetricsFile).size() : 0);
  warn_of_damage(dir, hooks);
  if (lines != recorded && hooks.observer != nullptr) {
    hooks.observer->warned((dir / io::kMetricsFile).string() + ": expected a line for each of " +
                           std::to_string(recorded) + " steps, got " + std::to_string(lines) +
                           "; somebody changed it; training goes on");
  }
  if (hooks.ranks != nullptr) hooks.ranks->start(trainer, dir, checkpoint);
  return run.train(io::JsonLinesWriter::Mode::append);
}

std::optional<RunStatus> run_status(const fs::path& run_dir) {
  if (!is_there(run_dir / io::kConfigFile)) return std::nullopt;
  runs::Notes notes;
  const auto info = runs::read_run_file(run_dir, &notes);
  return info ? info->status : RunStatus::running;
}

}  // namespace siamese::train
