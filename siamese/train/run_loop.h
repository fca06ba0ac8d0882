// The loop of a run in its directory: step, record, save, evaluate; and what becomes of the run when one of these
// cannot be done. A checkpoint that cannot be written costs nothing but itself: the next one that is due is tried, also
// where it was written in the background (train.save_in_background), at most one at a time. What cannot be recorded or
// evaluated ends the run, saved if possible.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "siamese/io/json_lines.h"
#include "siamese/runs/event_file.h"
#include "siamese/train/run.h"
#include "siamese/train/trainer.h"

namespace siamese::train {

class RunLoop {
 public:
  // `dir` holds the config, and when the trainer was resumed, its checkpoint. `info`: what run.json keeps from the
  // start of a run to its end (id, label, set, folder, earlier stretches); the rest is filled in here.
  RunLoop(Trainer& trainer, std::filesystem::path dir, runs::RunInfo info, const RunHooks& hooks);

  // To the end, or to where a signal or train.max_hours stops it. Every error leaves run.json saying so, and what was
  // trained saved where that is possible; one of the system (a full disk, memory) names the checkpoint to go on from.
  RunResult train(io::JsonLinesWriter::Mode mode);
  // Whether the evaluation of the trainer's step is due and not in eval.jsonl: a step is saved before it is evaluated.
  bool owes_evaluation() const;
  void write_status(RunStatus status, const std::string& message = "") {
    write_status_at(trainer_.state().step, status, message);
  }
  // The last word on a run that took all its steps: finished, or DivergedError (runs/outcome.h).
  RunResult conclude();
  // Removes the checkpoints that need not stay (retention.h); the observer hears when it cannot.
  void tidy() const;

 private:
  RunResult train_to_the_end(io::JsonLinesWriter::Mode mode);
  void take_step(io::JsonLinesWriter& metrics_file);
  void evaluate(io::JsonLinesWriter& eval_file);
  void write_grid(eval::Evaluation& evaluation) const;
  // train.tensorboard: the file begins, or gets another line. It is a copy: what cannot be written is said, and the run
  // goes on without it.
  void begin_events();
  void add_to_events(void (runs::EventFile::*add)(std::string_view line), const std::string& line);
  // `last`: nothing comes after it, so that a failure is one of the run.
  void save(bool last, RunStatus status);
  // The save in the background to its end, if there is one; what could not be written is said. `goes_on`: so does the
  // run.
  void settle_save(bool goes_on = true);
  void settle_save_if_done();
  void note_saved(int64_t step, const std::filesystem::path& saved, RunStatus status);
  void warn_not_saved(int64_t step, const std::string& why, bool goes_on) const;
  void write_status_at(int64_t step, RunStatus status, const std::string& message);
  void save_what_is_done();
  std::filesystem::path save_in_folder();
  void leave_stopped(const std::string& why);
  [[noreturn]] void diverge(const StepMetrics& metrics);
  [[noreturn]] void fail(const std::string& what);

  bool due(int64_t every) const { return every > 0 && trainer_.state().step % every == 0; }
  bool evaluation_due() const { return trainer_.finished() || due(trainer_.config().train.eval_every); }
  bool out_of_time() const;
  int caught_signal() const;  // of any rank; 0: none
  int64_t ranks() const;
  std::string describe() const;
  std::string last_good() const;

  Trainer& trainer_;
  std::filesystem::path dir_;
  runs::RunInfo info_;
  RunHooks hooks_;
  bool in_stretch_ = false;  // the last stretch of info_ is this process's
  Observer silent_;
  std::optional<runs::EventFile> events_;
  std::shared_ptr<BackgroundSave> saving_;  // null: none is under way
  int64_t saved_step_;                      // of the newest checkpoint; 0: there is none
  int64_t tried_step_;                      // no save of this step is due: it was saved, or could not be
};

}  // namespace siamese::train
