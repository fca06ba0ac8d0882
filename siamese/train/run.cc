#include "siamese/train/run.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/directory_lock.h"
#include "siamese/io/json_lines.h"
#include "siamese/io/run_dir.h"
#include "siamese/io/tensor_files.h"
#include "siamese/train/config_keys.h"
#include "siamese/train/run_loop.h"
#include "siamese/train/trainer.h"

namespace siamese::train {
namespace fs = std::filesystem;
namespace {

nlohmann::json read_run_file(const fs::path& dir) {
  const fs::path path = dir / io::kRunFile;
  if (!fs::exists(path)) return nlohmann::json::object();
  auto json = nlohmann::json::parse(io::read_file(path), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) throw DataError(path.string() + ": expected a JSON object");
  return json;
}

std::string text_or(const nlohmann::json& object, const char* key, const std::string& fallback) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : fallback;
}

bool is_our_file(const fs::path& path) {
  const std::string name = path.filename().string();
  for (const auto known : {io::kConfigFile, io::kMetricsFile, io::kEvalFile, io::kRunFile, io::kLatestFile,
                           io::kReportFile, io::kSamplesFolder}) {
    if (name == known) return true;
  }
  return io::checkpoint_step(name).has_value();
}

// A run directory holds a config and nothing that is not ours: a mistyped --overwrite must not cost anybody's files.
bool is_only_a_run(const fs::path& dir) {
  if (!fs::is_directory(dir) || !fs::exists(dir / io::kConfigFile)) return false;
  return std::all_of(fs::directory_iterator(dir), fs::directory_iterator(),
                     [](const auto& entry) { return is_our_file(entry.path()); });
}

void check_free(const fs::path& dir, bool overwrite) {
  if (!fs::exists(dir)) return;
  if (fs::is_directory(dir)) {
    io::remove_stale_temporaries(dir);  // of a run that was killed before it had anything
    if (fs::is_empty(dir)) return;
  }
  if (!overwrite) {
    throw UsageError(dir.string() + ": exists already; --overwrite replaces it, `siamese resume` continues it");
  }
  if (!is_only_a_run(dir)) {
    throw UsageError(dir.string() + ": --overwrite replaces only an earlier run, and this holds something else");
  }
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

RunResult start_run(const RunConfig& asked, const fs::path& run_dir, bool overwrite, const std::string& label,
                    const RunHooks& hooks) {
  check_free(run_dir, overwrite);
  apply_engine(asked.engine);
  const RunConfig config = kept_config(asked);
  Trainer trainer(config);  // refuses bad data and impossible models before the directory is touched
  if (overwrite && fs::exists(run_dir)) {
    const io::DirectoryLock nobody_writes(run_dir);
    fs::remove_all(run_dir);
  }
  make_directory(run_dir);
  const io::DirectoryLock lock(run_dir);
  io::write_file_atomic(run_dir / io::kConfigFile, config_text(config));
  return RunLoop(trainer, run_dir, label, hooks).train(io::JsonLinesWriter::Mode::replace);
}

RunResult resume_run(const fs::path& run_or_checkpoint, const RunHooks& hooks) {
  const bool is_checkpoint = fs::exists(run_or_checkpoint / io::kTrainerFile);
  const fs::path dir = is_checkpoint ? fs::absolute(run_or_checkpoint / "..").lexically_normal() : run_or_checkpoint;
  if (!fs::exists(dir / io::kConfigFile)) {
    throw DataError(dir.string() + ": not a run directory: " + std::string(io::kConfigFile) + " is missing");
  }
  if (!is_checkpoint && io::has_tensor_files(dir)) {
    throw DataError(dir.string() + ": nothing to resume: it holds weights without the state of a run (" +
                    std::string(io::kTrainerFile) + "); init.from=" + dir.string() + " starts a run from them");
  }
  const io::DirectoryLock lock(dir);
  const auto run_file = read_run_file(dir);
  io::remove_stale_temporaries(dir);
  const bool begun = is_checkpoint || !io::list_checkpoints(dir).empty() || io::read_latest(dir);
  const RunConfig config = read_config_file((dir / io::kConfigFile).string());
  fs::path checkpoint;
  std::string edited;
  if (begun) {
    checkpoint = io::resolve_checkpoint(run_or_checkpoint, io::CheckpointUse::resume);
    const RunConfig then = read_config_file((checkpoint / io::kConfigFile).string());
    edited = check_edits(config, then, dir, checkpoint);
  }
  apply_engine(config.engine);
  Trainer trainer(config, begun);
  if (begun) trainer.resume_from(checkpoint);
  if (!edited.empty() && hooks.observer != nullptr) hooks.observer->warned(edited);
  RunLoop run(trainer, dir, text_or(run_file, "label", ""), hooks);
  const bool unrecorded = !trainer.state().unrecorded.empty();
  if (trainer.finished() && !unrecorded) {
    run.write_status(RunStatus::finished);  // a kill may have come just before
    run.tidy();
    return {RunStatus::finished, 0};
  }
  const int64_t step = trainer.state().step;
  if (begun) io::write_latest(dir, io::checkpoint_name(step));  // an older checkpoint given by name is the newest now
  const int64_t recorded = unrecorded ? step - 1 : step;
  io::truncate_json_lines(dir / io::kMetricsFile, "step", recorded);
  io::truncate_json_lines(dir / io::kEvalFile, "step", recorded);
  const auto lines =
      static_cast<int64_t>(fs::exists(dir / io::kMetricsFile) ? io::read_json_lines(dir / io::kMetricsFile).size() : 0);
  if (lines != recorded && hooks.observer != nullptr) {
    hooks.observer->warned((dir / io::kMetricsFile).string() + ": expected a line for each of " +
                           std::to_string(recorded) + " steps, got " + std::to_string(lines) +
                           "; somebody changed it; training goes on");
  }
  return run.train(io::JsonLinesWriter::Mode::append);
}

std::optional<RunStatus> run_status(const fs::path& run_dir) {
  if (!fs::exists(run_dir / io::kConfigFile)) return std::nullopt;
  const auto json = read_run_file(run_dir);
  return enum_from_text<RunStatus>(text_or(json, "status", "running")).value_or(RunStatus::running);
}

}  // namespace siamese::train
