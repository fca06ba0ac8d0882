#include "siamese/cli/progress.h"

#include <cmath>
#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

#include "siamese/base/check.h"
#include "siamese/base/duration.h"
#include "siamese/base/utf8.h"
#include "siamese/cli/signals.h"

namespace siamese::cli {
namespace {

constexpr int kBarWidth = 24;

std::string skip_text(const train::StepMetrics& metrics) {
  const std::string what = fmt::format("step {}: skipped: loss {}, gradient norm {}", metrics.step,
                                       std::abs(metrics.loss), metrics.grad_norm);
  if (metrics.skip_reason == train::SkipReason::non_finite) return what;
  return what + fmt::format(": {} is {:.1f} standard deviations above the steps before",
                            metrics.skip_reason == train::SkipReason::loss ? "the loss" : "the norm", metrics.skip_z);
}

}  // namespace

const char* stopped_text(const train::RunResult& result) {
  return result.signal == 0 ? "train.max_hours is over: stopped and saved" : "stopped and saved";
}

int exit_code_of(const train::RunResult& result) {
  return result.signal == 0 ? static_cast<int>(Exit::resumable) : 128 + result.signal;
}

Progress::Progress(Style style)
    : quiet_(style != Style::shown), json_(style == Style::json), terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (bar_shown_) std::fputc('\n', stderr);
}

void Progress::clear_bar() {
  if (bar_shown_) std::fputs("\r\033[K", stderr);
  bar_shown_ = false;
}

void Progress::line(const std::string& text) {
  if (quiet_) return;
  clear_bar();
  std::fprintf(stderr, "%s\n", printable(text).c_str());
}

void Progress::started(const std::string& what) {
  catch_signals();  // from here on there is something to save
  line(what);
  first_step_ = -1;
}

void Progress::stepped(const train::StepMetrics& metrics, int64_t steps) {
  if (json_) {
    std::printf("%s\n", train::to_json(metrics).c_str());
    std::fflush(stdout);
  }
  const auto now = Clock::now();
  if (first_step_ < 0) {
    first_step_ = metrics.step;
    run_start_ = now;
    mean_loss_ = metrics.loss;
    last_shown_ = {};
  }
  if (metrics.skipped) {
    line(skip_text(metrics));
  } else {
    mean_loss_ = std::isfinite(mean_loss_) ? 0.9 * mean_loss_ + 0.1 * metrics.loss : metrics.loss;
  }
  const double pause = std::chrono::duration<double>(now - last_shown_).count();
  if (quiet_ || (pause < (terminal_ ? 0.1 : 5.0) && metrics.step != steps)) return;
  last_shown_ = now;
  const int64_t done = metrics.step - first_step_;
  const double seconds = std::chrono::duration<double>(now - run_start_).count();
  const std::string left =
      done > 0 ? duration_text(seconds / static_cast<double>(done) * static_cast<double>(steps - metrics.step)) : "?";
  const std::string text = fmt::format("step {}/{}  smoothed loss {:.4f}  grad {:.3f}  lr {:.2e}  {:.0f} {}/s  {} left",
                                       metrics.step, steps, mean_loss_, metrics.grad_norm, metrics.lr,
                                       metrics.of_images ? metrics.samples_per_s : metrics.tokens_per_s,
                                       metrics.of_images ? "images" : "tokens", left);
  if (!terminal_) return line(text);
  const auto filled = static_cast<size_t>(kBarWidth * metrics.step / std::max<int64_t>(1, steps));
  std::fprintf(stderr, "\r\033[K[%s%s] %s", std::string(filled, '=').c_str(),
               std::string(kBarWidth - filled, ' ').c_str(), text.c_str());
  std::fflush(stderr);
  bar_shown_ = true;
}

void Progress::evaluated(const eval::Evaluation& evaluation) {
  if (json_) std::printf("%s\n", eval::to_json(evaluation).c_str());
  line(fmt::format("step {}: {}, {}", evaluation.step, evaluation.loss_text(), evaluation.measures_text()));
}

void Progress::saved(const std::filesystem::path& checkpoint) { line("saved " + checkpoint.string()); }

void Progress::warned(const std::string& message) {
  clear_bar();
  std::fprintf(stderr, "siamese: %s\n", printable(message).c_str());
}

}  // namespace siamese::cli
