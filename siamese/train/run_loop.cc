#include "siamese/train/run_loop.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/png.h"
#include "siamese/io/run_dir.h"
#include "siamese/runs/eval_record.h"
#include "siamese/runs/lines.h"
#include "siamese/runs/outcome.h"
#include "siamese/train/failure_text.h"
#include "siamese/train/provenance.h"
#include "siamese/train/ranks.h"
#include "siamese/train/record_facts.h"
#include "siamese/train/retention.h"

namespace siamese::train {
namespace fs = std::filesystem;

RunLoop::RunLoop(Trainer& trainer, fs::path dir, runs::RunInfo info, const RunHooks& hooks)
    : trainer_(trainer),
      dir_(std::move(dir)),
      info_(std::move(info)),
      hooks_(hooks),
      saved_step_(trainer.state().step),
      tried_step_(trainer.state().step) {
  if (hooks_.observer == nullptr) hooks_.observer = &silent_;
  const RunConfig& config = trainer_.config();
  info_.scheme = config.model.residual;
  if (info_.label.empty()) info_.label = config.model.residual;
  info_.steps = config.train.steps;
  info_.parameters = trainer_.model().parameters().count();
  info_.seed = config.train.seed;
  info_.lr = config.optim.lr;
  info_.step_flops = step_flops(trainer_.model(), config);
  info_.data = data_key(trainer_.state().data);
}

// What goes wrong in between, as an image that cannot be read, costs no step: the run is saved, then it is thrown.
RunResult RunLoop::train(io::JsonLinesWriter::Mode mode) {
  try {
    return train_to_the_end(mode);
  } catch (const DivergedError&) {  // run.json says so already
    throw;
  } catch (const SystemError& error) {
    fail(error.what());
  } catch (const Error& error) {
    leave_stopped(error.what());
    throw;
  } catch (const std::exception& error) {  // memory, LibTorch, oneDNN
    fail(failure_text(error));
  }
}

RunResult RunLoop::train_to_the_end(io::JsonLinesWriter::Mode mode) {
  auto metrics_file = io::JsonLinesWriter::open(dir_ / io::kMetricsFile, mode);
  auto eval_file = io::JsonLinesWriter::open(dir_ / io::kEvalFile, mode);
  info_.stretches.push_back(begin_stretch(trainer_.config().engine, trainer_.state().step, ranks(), hooks_.asked_by));
  in_stretch_ = true;
  write_status(RunStatus::running);
  begin_events();
  hooks_.observer->started(describe());
  bool unrecorded = !trainer_.state().unrecorded.empty();
  if (!unrecorded && owes_evaluation()) {
    tidy();  // the kill may have come right after the save
    evaluate(eval_file);
  }
  while (unrecorded || !trainer_.finished()) {
    if (unrecorded) {
      metrics_file.write(trainer_.state().unrecorded);
      add_to_events(&runs::EventFile::add_step, trainer_.state().unrecorded);
    } else {
      take_step(metrics_file);
    }
    trainer_.set_unrecorded("");
    settle_save_if_done();
    const int signal = caught_signal();
    const bool stop = signal != 0 || out_of_time();
    if (trainer_.finished() || due(trainer_.config().train.checkpoint_every) || stop || unrecorded) {
      metrics_file.flush();
      eval_file.flush();
      save(trainer_.finished() || stop, stop ? RunStatus::stopped : RunStatus::running);
    }
    unrecorded = false;
    if (stop) return {RunStatus::stopped, signal};  // an evaluation that is due is made by who resumes
    if (evaluation_due()) evaluate(eval_file);
  }
  eval_file.flush();
  return conclude();
}

RunResult RunLoop::conclude() {
  const bool from_scratch = trainer_.config().init.from.empty();
  const std::string why = runs::divergence(runs::read_course(dir_, from_scratch));
  if (why.empty()) {
    write_status(RunStatus::finished);
    return {RunStatus::finished, 0};
  }
  write_status(RunStatus::diverged, why);
  throw DivergedError(dir_.string() + ": diverged: " + why);
}

bool RunLoop::owes_evaluation() const {
  const int64_t step = trainer_.state().step;
  if (step == 0 || !evaluation_due()) return false;
  bool found = false;
  runs::Notes not_ours;  // torn or no evaluation: no reason not to make this one
  runs::for_each_line(
      dir_ / io::kEvalFile,
      [&](std::string_view line, const std::string& where, runs::Notes* notes) {
        found |= runs::read_eval(line, where, notes).step == step;
      },
      &not_ours);
  return !found;
}

// From the step on until its line is in its file, a checkpoint would say that it is not.
void RunLoop::take_step(io::JsonLinesWriter& metrics_file) {
  const StepMetrics metrics = hooks_.ranks ? hooks_.ranks->step(trainer_) : trainer_.step();
  const std::string line = to_json(metrics);
  trainer_.set_unrecorded(line);
  metrics_file.write(line);
  add_to_events(&runs::EventFile::add_step, line);
  hooks_.observer->stepped(metrics, trainer_.config().train.steps);
  if (trainer_.state().skips_in_a_row >= trainer_.config().train.max_skips) diverge(metrics);
}

void RunLoop::evaluate(io::JsonLinesWriter& eval_file) {
  eval::Evaluation evaluation = hooks_.ranks ? hooks_.ranks->evaluate(trainer_) : trainer_.evaluate();
  if (evaluation.samples) write_grid(evaluation);
  const std::string line = eval::to_json(evaluation);
  eval_file.write(line);
  add_to_events(&runs::EventFile::add_eval, line);
  hooks_.observer->evaluated(evaluation);
}

// The first drawn samples as a picture, before the line that names it.
void RunLoop::write_grid(eval::Evaluation& evaluation) const {
  constexpr int64_t kMost = 64;
  const at::Tensor& images = evaluation.samples->images;
  if (trainer_.config().data.source == data::Source::latents) return;
  io::make_directory(dir_ / io::kSamplesFolder);
  const fs::path grid = fs::path(io::kSamplesFolder) / (io::checkpoint_name(evaluation.step) + ".png");
  io::write_png(dir_ / grid, eval::image_grid(images.narrow(0, 0, std::min(kMost, images.size(0)))));
  evaluation.samples->grid = grid.string();
}

void RunLoop::begin_events() {
  if (!trainer_.config().train.tensorboard) return;
  try {
    events_.emplace(dir_, dir_, info_.stretches);
  } catch (const Error& error) {
    hooks_.observer->warned(fmt::format("no events for TensorBoard: {}; training goes on", error.what()));
  }
}

void RunLoop::add_to_events(void (runs::EventFile::*add)(std::string_view line), const std::string& line) {
  if (!events_) return;
  try {
    ((*events_).*add)(line);
  } catch (const Error& error) {
    events_.reset();
    hooks_.observer->warned(
        fmt::format("no more events for TensorBoard: {}; training goes on, and siamese report {} "
                    "--tensorboard FOLDER writes them from {}",
                    error.what(), dir_.string(), io::kMetricsFile));
  }
}

void RunLoop::save(bool last, RunStatus status) {
  settle_save();
  tried_step_ = trainer_.state().step;
  const bool in_background = trainer_.config().train.save_in_background && !last;
  fs::path saved;
  try {
    if (in_background) {
      saving_ = hooks_.ranks ? hooks_.ranks->begin_save(trainer_, dir_) : trainer_.begin_save(dir_);
    } else {
      saved = save_in_folder();
    }
  } catch (const comm::Unanswered&) {  // no step can be taken any more
    throw;
  } catch (const SystemError& error) {
    if (last) throw;
    return warn_not_saved(tried_step_, error.what(), /*goes_on=*/true);
  }
  if (!in_background) note_saved(tried_step_, saved, status);
}

void RunLoop::settle_save_if_done() {
  if (saving_ && saving_->is_done()) settle_save();
}

void RunLoop::settle_save(bool goes_on) {
  if (!saving_) return;
  const std::shared_ptr<BackgroundSave> saving = std::move(saving_);
  fs::path saved;
  try {
    saved = hooks_.ranks ? hooks_.ranks->finish_save() : saving->finish();
  } catch (const comm::Unanswered&) {
    throw;
  } catch (const SystemError& error) {
    return warn_not_saved(saving->step(), error.what(), goes_on);
  }
  note_saved(saving->step(), saved, RunStatus::running);
}

void RunLoop::note_saved(int64_t step, const fs::path& saved, RunStatus status) {
  saved_step_ = step;
  write_status_at(step, status, "");
  hooks_.observer->saved(saved);
  tidy();
}

void RunLoop::warn_not_saved(int64_t step, const std::string& why, bool goes_on) const {
  hooks_.observer->warned(
      fmt::format("step {}: not saved: {}{}; {}", step, why, goes_on ? "; training goes on" : "", last_good()));
}

fs::path RunLoop::save_in_folder() { return hooks_.ranks ? hooks_.ranks->save(trainer_, dir_) : trainer_.save(dir_); }

void RunLoop::tidy() const {
  const TrainConfig& train = trainer_.config().train;
  try {
    remove_old_checkpoints(dir_, train.keep_last, train.keep_every);
  } catch (const Error& error) {
    hooks_.observer->warned(std::string("an old checkpoint stays: ") + error.what());
  }
}

// For a run that ends for another reason, which is the one to be told.
void RunLoop::leave_stopped(const std::string& why) {
  try {
    settle_save(/*goes_on=*/false);
  } catch (const std::exception&) {
  }
  try {
    save_what_is_done();
  } catch (const std::exception&) {
  }
  try {
    write_status(RunStatus::stopped, why);
  } catch (const std::exception&) {
  }
}

void RunLoop::save_what_is_done() {
  if (trainer_.state().step == tried_step_ || !trainer_.can_be_saved()) return;
  tried_step_ = trainer_.state().step;
  try {  // their lines before the checkpoint that counts on them
    for (const auto file : {io::kMetricsFile, io::kEvalFile}) {
      io::JsonLinesWriter::open(dir_ / file, io::JsonLinesWriter::Mode::append).flush();
    }
  } catch (const Error&) {
  }
  save_in_folder();
  saved_step_ = tried_step_;
}

void RunLoop::fail(const std::string& what) {
  leave_stopped(what);
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
  settle_save(/*goes_on=*/false);
  write_status(RunStatus::diverged, message);
  throw DivergedError(dir_.string() + ": diverged: " + message);
}

int64_t RunLoop::ranks() const { return hooks_.ranks ? hooks_.ranks->size() : 1; }

int RunLoop::caught_signal() const {
  const int here = hooks_.stop_signal ? hooks_.stop_signal() : 0;
  return here == 0 && hooks_.ranks ? hooks_.ranks->signal_elsewhere() : here;
}

bool RunLoop::out_of_time() const {
  const std::chrono::duration<double, std::ratio<3600>> used = std::chrono::steady_clock::now() - hooks_.begun;
  const double limit = trainer_.config().train.max_hours;
  return limit > 0 && used.count() >= limit;
}

void RunLoop::write_status_at(int64_t step, RunStatus status, const std::string& message) {
  info_.status = status;
  info_.message = message;
  info_.step = step;
  info_.saved = saved_step_;
  if (in_stretch_) {
    info_.stretches.back().ended = runs::utc_now();
    info_.stretches.back().to_step = info_.step;
  }
  runs::write_run_file(dir_, info_);
}

// What a reader would want to know of the plan: data that come more than once, a rate that never gets to its peak.
static std::string plan_text(const RunConfig& config, int64_t samples) {
  std::string text;
  const double epochs = samples > 0 ? static_cast<double>(config.train.steps) *
                                          static_cast<double>(config.train.batch) / static_cast<double>(samples)
                                    : 0;
  if (epochs > 1) text += fmt::format(", {:.3g} epochs", epochs);
  if (config.optim.schedule.warmup >= config.train.steps && config.optim.schedule.warmup > 0) {
    text += fmt::format("; optim.schedule.warmup ({}) is not over before the end: the rate never stays at optim.lr",
                        config.optim.schedule.warmup);
  }
  if (config.train.residual_warmup != ResidualWarmup::none &&
      config.train.residual_warmup_steps >= config.train.steps) {
    text += fmt::format(
        "; train.residual_warmup_steps ({}) is not over before the end: the last blocks never write "
        "the whole",
        config.train.residual_warmup_steps);
  }
  if (const std::string note = models::norm_note(config.model); !note.empty()) text += "; " + note;
  return text;
}

std::string RunLoop::describe() const {
  const RunConfig& config = trainer_.config();
  return fmt::format("scheme {}: {} parameters, {} blocks of width {}, {}; {}{}", config.model.residual,
                     trainer_.model().parameters().count(), config.model.blocks, config.model.width,
                     trainer_.training_data().describe(),
                     trainer_.state().step == 0
                         ? fmt::format("{} steps", config.train.steps)
                         : fmt::format("from step {} to {}", trainer_.state().step, config.train.steps),
                     plan_text(config, trainer_.training_data().samples()));
}

}  // namespace siamese::train
