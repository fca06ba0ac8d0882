// What a run shows while it works: one line that is redrawn on a terminal, plain lines every few seconds elsewhere.
#pragma once

#include <chrono>
#include <string>

#include "siamese/train/run.h"

namespace siamese::cli {

// Of a run that was stopped: why, and 128 + signal, as shells report it, or 75 after train.max_hours.
const char* stopped_text(const train::RunResult& result);
int exit_code_of(const train::RunResult& result);

class Progress : public train::Observer {
 public:
  enum class Style { shown, quiet, json };  // json: every metrics and evaluation line on stdout, nothing else
  explicit Progress(Style style);
  ~Progress() override;

  void started(const std::string& what) override;
  void stepped(const train::StepMetrics& metrics, int64_t steps) override;
  void evaluated(const eval::Evaluation& evaluation) override;
  void saved(const std::filesystem::path& checkpoint) override;
  void warned(const std::string& message) override;  // in every style

 private:
  using Clock = std::chrono::steady_clock;
  void line(const std::string& text);  // a line that stays
  void clear_bar();

  bool quiet_;
  bool json_;
  bool terminal_;
  bool bar_shown_ = false;
  Clock::time_point run_start_;
  Clock::time_point last_shown_;
  int64_t first_step_ = -1;
  double mean_loss_ = 0;  // smoothed
};

}  // namespace siamese::cli
