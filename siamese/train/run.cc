#include "siamese/train/run.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/directory_lock.h"
#include "siamese/io/json_lines.h"
#include "siamese/io/png.h"
#include "siamese/io/run_dir.h"
#include "siamese/train/trainer.h"

namespace siamese::train {
namespace fs = std::filesystem;
namespace {

void make_directory(const fs::path& dir) {
  std::error_code error;
  fs::create_directories(dir, error);
  if (error || !fs::is_directory(dir)) {
    throw SystemError(dir.string() + ": cannot be made: " + (error ? error.message() : "a file stands there"));
  }
}

class Run {
 public:
  Run(Trainer& trainer, fs::path dir, std::string label, const RunHooks& hooks)
      : trainer_(trainer),
        first_step_(trainer.state().step),
        dir_(std::move(dir)),
        label_(std::move(label)),
        hooks_(hooks) {
    if (hooks_.observer == nullptr) hooks_.observer = &silent_;
  }

  // What goes wrong in between, as an image that cannot be read, costs no step: the run is saved, then it is thrown.
  RunResult train(io::JsonLinesWriter::Mode mode) {
    try {
      return train_to_the_end(mode);
    } catch (const DataError& error) {
      if (trainer_.state().step > first_step_) trainer_.save(dir_);
      write_status(RunStatus::stopped, error.what());
      throw;
    }
  }

  void write_status(RunStatus status, const std::string& message = "") const {
    const RunConfig& config = trainer_.config();
    nlohmann::ordered_json json = {{"schema", 1},
                                   {"status", std::string(enum_text(status))},
                                   {"scheme", config.model.residual},
                                   {"label", label_.empty() ? config.model.residual : label_},
                                   {"step", trainer_.state().step},
                                   {"steps", config.train.steps},
                                   {"parameters", trainer_.model().parameters().count()},
                                   {"seed", config.train.seed},
                                   {"lr", config.optim.lr}};
    if (!message.empty()) json["message"] = message;
    io::write_file_atomic(dir_ / io::kRunFile, json.dump(2) + "\n");
  }

 private:
  RunResult train_to_the_end(io::JsonLinesWriter::Mode mode) {
    auto metrics_file = io::JsonLinesWriter::open(dir_ / io::kMetricsFile, mode);
    auto eval_file = io::JsonLinesWriter::open(dir_ / io::kEvalFile, mode);
    const TrainConfig& train = trainer_.config().train;
    write_status(RunStatus::running);
    hooks_.observer->started(describe());
    while (!trainer_.finished()) {
      const StepMetrics metrics = trainer_.step();
      metrics_file.write(to_json(metrics));
      hooks_.observer->stepped(metrics, train.steps);
      if (trainer_.state().skips_in_a_row >= train.max_skips) diverge(metrics);
      if (trainer_.finished() || due(train.eval_every)) {
        eval::Evaluation evaluation = trainer_.evaluate();
        if (evaluation.samples) write_grid(evaluation);
        eval_file.write(eval::to_json(evaluation));
        hooks_.observer->evaluated(evaluation);
      }
      const int signal = hooks_.stop_signal ? hooks_.stop_signal() : 0;
      if (trainer_.finished() || due(train.checkpoint_every) || signal != 0) {
        metrics_file.flush();
        eval_file.flush();
        const fs::path saved = trainer_.save(dir_);
        write_status(trainer_.finished() ? RunStatus::finished : signal != 0 ? RunStatus::stopped : RunStatus::running);
        hooks_.observer->saved(saved);
      }
      if (signal != 0 && !trainer_.finished()) return {RunStatus::stopped, signal};
    }
    return {RunStatus::finished, 0};
  }

  // The first drawn samples as a picture, before the line that names it.
  void write_grid(eval::Evaluation& evaluation) const {
    constexpr int64_t kMost = 64;
    const at::Tensor& images = evaluation.samples->images;
    if (trainer_.config().data.source == data::Source::latents) return;
    make_directory(dir_ / io::kSamplesFolder);
    const fs::path grid = fs::path(io::kSamplesFolder) / (io::checkpoint_name(evaluation.step) + ".png");
    io::write_png(dir_ / grid, eval::image_grid(images.narrow(0, 0, std::min(kMost, images.size(0)))));
    evaluation.samples->grid = grid.string();
  }

  bool due(int64_t every) const { return every > 0 && trainer_.state().step % every == 0; }

  [[noreturn]] void diverge(const StepMetrics& metrics) {
    const std::string message =
        fmt::format("loss {}, gradient norm {} at step {}: {} non-finite steps in a row", std::abs(metrics.loss),
                    metrics.grad_norm, metrics.step, trainer_.state().skips_in_a_row);
    write_status(RunStatus::diverged, message);
    throw DivergedError(dir_.string() + ": diverged: " + message);
  }

  std::string describe() const {
    const RunConfig& config = trainer_.config();
    return fmt::format("{}: {} parameters, {} blocks of width {}, {}; {}", config.model.residual,
                       trainer_.model().parameters().count(), config.model.blocks, config.model.width,
                       trainer_.training_data().describe(),
                       trainer_.state().step == 0
                           ? fmt::format("{} steps", config.train.steps)
                           : fmt::format("from step {} to {}", trainer_.state().step, config.train.steps));
  }

  Trainer& trainer_;
  const int64_t first_step_;
  fs::path dir_;
  std::string label_;
  RunHooks hooks_;
  Observer silent_;
};

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
  return Run(trainer, run_dir, label, hooks).train(io::JsonLinesWriter::Mode::replace);
}

RunResult resume_run(const fs::path& run_or_checkpoint, const RunHooks& hooks) {
  const bool is_checkpoint = fs::exists(run_or_checkpoint / io::kTrainerFile);
  const fs::path dir = is_checkpoint ? fs::absolute(run_or_checkpoint / "..").lexically_normal() : run_or_checkpoint;
  if (!fs::exists(dir / io::kConfigFile)) {
    throw DataError(dir.string() + ": not a run directory: " + std::string(io::kConfigFile) + " is missing");
  }
  if (!is_checkpoint && fs::exists(dir / io::kModelFile)) {
    throw DataError(dir.string() + ": nothing to resume: it holds weights without the state of a run (" +
                    std::string(io::kTrainerFile) + "); init.from=" + dir.string() + " starts a run from them");
  }
  const io::DirectoryLock lock(dir);
  const auto run_file = read_run_file(dir);
  io::remove_stale_temporaries(dir);
  const bool begun = is_checkpoint || !io::list_checkpoints(dir).empty() || io::read_latest(dir);
  const RunConfig config = read_config_file((dir / io::kConfigFile).string());
  apply_engine(config.engine);
  Trainer trainer(config, begun);
  if (begun) trainer.resume_from(io::resolve_checkpoint(run_or_checkpoint, io::CheckpointUse::resume));
  const std::string label = text_or(run_file, "label", "");
  if (trainer.finished()) {
    Run(trainer, dir, label, hooks).write_status(RunStatus::finished);  // a kill may have come just before
    return {RunStatus::finished, 0};
  }
  const int64_t step = trainer.state().step;
  if (begun) io::write_latest(dir, io::checkpoint_name(step));  // an older checkpoint given by name is the newest now
  io::truncate_json_lines(dir / io::kMetricsFile, "step", step);
  io::truncate_json_lines(dir / io::kEvalFile, "step", step);
  return Run(trainer, dir, label, hooks).train(io::JsonLinesWriter::Mode::append);
}

std::optional<RunStatus> run_status(const fs::path& run_dir) {
  if (!fs::exists(run_dir / io::kConfigFile)) return std::nullopt;
  const auto json = read_run_file(run_dir);
  return enum_from_text<RunStatus>(text_or(json, "status", "running")).value_or(RunStatus::running);
}

}  // namespace siamese::train
