#include "siamese/train/run_loop.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/png.h"
#include "siamese/io/run_dir.h"
#include "siamese/train/retention.h"

namespace siamese::train {
namespace fs = std::filesystem;

void make_directory(const fs::path& dir) {
  std::error_code error;
  fs::create_directories(dir, error);
  if (error || !fs::is_directory(dir)) {
    throw SystemError(dir.string() + ": cannot be made: " + (error ? error.message() : "a file stands there"));
  }
}

RunLoop::RunLoop(Trainer& trainer, fs::path dir, std::string label, const RunHooks& hooks)
    : trainer_(trainer),
      dir_(std::move(dir)),
      label_(std::move(label)),
      hooks_(hooks),
      tried_step_(trainer.state().step) {
  if (hooks_.observer == nullptr) hooks_.observer = &silent_;
}

// What goes wrong in between, as an image that cannot be read, costs no step: the run is saved, then it is thrown.
RunResult RunLoop::train(io::JsonLinesWriter::Mode mode) {
  try {
    return train_to_the_end(mode);
  } catch (const DataError& error) {
    save_what_is_done();
    try {
      write_status(RunStatus::stopped, error.what());
    } catch (const SystemError&) {  // the first error is the one to be told
    }
    throw;
  } catch (const SystemError& error) {
    fail(error.what());
  }
}

RunResult RunLoop::train_to_the_end(io::JsonLinesWriter::Mode mode) {
  auto metrics_file = io::JsonLinesWriter::open(dir_ / io::kMetricsFile, mode);
  auto eval_file = io::JsonLinesWriter::open(dir_ / io::kEvalFile, mode);
  const TrainConfig& train = trainer_.config().train;
  write_status(RunStatus::running);
  hooks_.observer->started(describe());
  bool unrecorded = !trainer_.state().unrecorded.empty();
  while (unrecorded || !trainer_.finished()) {
    if (unrecorded) {
      metrics_file.write(trainer_.state().unrecorded);
    } else {
      take_step(metrics_file);
    }
    if (trainer_.finished() || due(train.eval_every)) evaluate(eval_file);
    trainer_.set_unrecorded("");
    const int signal = hooks_.stop_signal ? hooks_.stop_signal() : 0;
    const bool stop = signal != 0 || out_of_time();
    if (trainer_.finished() || due(train.checkpoint_every) || stop || unrecorded) {
      metrics_file.flush();
      eval_file.flush();
      save(trainer_.finished() || stop, trainer_.finished() ? RunStatus::finished
                                        : stop              ? RunStatus::stopped
                                                            : RunStatus::running);
    }
    unrecorded = false;
    if (stop && !trainer_.finished()) return {RunStatus::stopped, signal};
  }
  return {RunStatus::finished, 0};
}

// From the step on until its lines are in their files, a checkpoint would say that they are not.
void RunLoop::take_step(io::JsonLinesWriter& metrics_file) {
  const StepMetrics metrics = trainer_.step();
  const std::string line = to_json(metrics);
  trainer_.set_unrecorded(line);
  metrics_file.write(line);
  hooks_.observer->stepped(metrics, trainer_.config().train.steps);
  if (trainer_.state().skips_in_a_row >= trainer_.config().train.max_skips) diverge(metrics);
}

void RunLoop::evaluate(io::JsonLinesWriter& eval_file) {
  eval::Evaluation evaluation = trainer_.evaluate();
  if (evaluation.samples) write_grid(evaluation);
  eval_file.write(eval::to_json(evaluation));
  hooks_.observer->evaluated(evaluation);
}

// The first drawn samples as a picture, before the line that names it.
void RunLoop::write_grid(eval::Evaluation& evaluation) const {
  constexpr int64_t kMost = 64;
  const at::Tensor& images = evaluation.samples->images;
  if (trainer_.config().data.source == data::Source::latents) return;
  make_directory(dir_ / io::kSamplesFolder);
  const fs::path grid = fs::path(io::kSamplesFolder) / (io::checkpoint_name(evaluation.step) + ".png");
  io::write_png(dir_ / grid, eval::image_grid(images.narrow(0, 0, std::min(kMost, images.size(0)))));
  evaluation.samples->grid = grid.string();
}

void RunLoop::save(bool last, RunStatus status) {
  tried_step_ = trainer_.state().step;
  fs::path saved;
  try {
    saved = trainer_.save(dir_);
  } catch (const SystemError& error) {
    if (last) throw;
    hooks_.observer->warned(
        fmt::format("step {}: not saved: {}; training goes on; {}", tried_step_, error.what(), last_good()));
    return;
  }
  write_status(status);
  hooks_.observer->saved(saved);
  tidy();
}

void RunLoop::tidy() const {
  const TrainConfig& train = trainer_.config().train;
  try {
    remove_old_checkpoints(dir_, train.keep_last, train.keep_every);
  } catch (const Error& error) {
    hooks_.observer->warned(std::string("an old checkpoint stays: ") + error.what());
  }
}

// For a run that ends for another reason, which is the one to be told.
void RunLoop::save_what_is_done() {
  if (trainer_.state().step == tried_step_) return;
  tried_step_ = trainer_.state().step;
  try {  // their lines before the checkpoint that counts on them
    for (const auto file : {io::kMetricsFile, io::kEvalFile}) {
      io::JsonLinesWriter::open(dir_ / file, io::JsonLinesWriter::Mode::append).flush();
    }
  } catch (const Error&) {
  }
  try {
    trainer_.save(dir_);
  } catch (const Error&) {
  }
}

void RunLoop::fail(const std::string& what) {
  save_what_is_done();
  try {
    write_status(RunStatus::stopped, what);
  } catch (const SystemError&) {
  }
  throw SystemError(what + "; " + last_good() + "; go on with: siamese resume " + dir_.string());
}

std::string RunLoop::last_good() const {
  std::optional<std::string> latest;
  try {
    latest = io::read_latest(dir_);
  } catch (const Error& error) {
    return error.what();
  }
  return latest ? "the last good checkpoint is " + *latest : "there is no checkpoint";
}

void RunLoop::diverge(const StepMetrics& metrics) {
  const std::string message =
      fmt::format("loss {}, gradient norm {} at step {}: {} non-finite steps in a row", std::abs(metrics.loss),
                  metrics.grad_norm, metrics.step, trainer_.state().skips_in_a_row);
  write_status(RunStatus::diverged, message);
  throw DivergedError(dir_.string() + ": diverged: " + message);
}

bool RunLoop::out_of_time() const {
  const std::chrono::duration<double, std::ratio<3600>> used = std::chrono::steady_clock::now() - hooks_.begun;
  const double limit = trainer_.config().train.max_hours;
  return limit > 0 && used.count() >= limit;
}

void RunLoop::write_status(RunStatus status, const std::string& message) const {
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

std::string RunLoop::describe() const {
  const RunConfig& config = trainer_.config();
  return fmt::format(
      "{}: {} parameters, {} blocks of width {}, {}; {}", config.model.residual, trainer_.model().parameters().count(),
      config.model.blocks, config.model.width, trainer_.training_data().describe(),
      trainer_.state().step == 0 ? fmt::format("{} steps", config.train.steps)
                                 : fmt::format("from step {} to {}", trainer_.state().step, config.train.steps));
}

}  // namespace siamese::train
