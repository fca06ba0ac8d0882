#include "siamese/report/live_run.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

#include "siamese/base/check.h"
#include "siamese/io/run_dir.h"
#include "siamese/report/reader.h"

namespace siamese::report {

namespace {

namespace fs = std::filesystem;

constexpr size_t kMostEvals = 2000;

// The newest value counts for a tenth: one slow step is no news.
void follow(double value, double& mean) {
  if (std::isfinite(value)) mean = std::isfinite(mean) ? 0.9 * mean + 0.1 * value : value;
}

}  // namespace

bool FileStamp::changed(const fs::path& path) {
  struct stat now = {};
  if (::stat(path.c_str(), &now) != 0) now = {};
  const FileStamp before = *this;
  inode_ = now.st_ino;
  size_ = static_cast<uint64_t>(now.st_size);
  seconds_ = now.st_mtim.tv_sec;
  nanoseconds_ = now.st_mtim.tv_nsec;
  return inode_ != before.inode_ || size_ != before.size_ || seconds_ != before.seconds_ ||
         nanoseconds_ != before.nanoseconds_;
}

void Complaints::add(const runs::Notes& notes) {
  if (count == 0 && !notes.empty()) first = notes.front();
  count += notes.size();
}

void Complaints::add_to(std::vector<std::string>& list) const {
  if (count == 0) return;
  list.push_back(count > 1 ? fmt::format("{}; and {} more such places", first, count - 1) : first);
}

LiveRun::LiveRun(fs::path folder, std::string name)
    : folder_(std::move(folder)),
      name_(std::move(name)),
      steps_(folder_ / io::kMetricsFile),
      evals_file_(folder_ / io::kEvalFile) {
  facts_.dir = name_;
}

bool LiveRun::poll() {
  const bool facts = poll_facts(), steps = poll_steps(), evals = poll_evals();
  gone_ = !run_file_.there() && steps_.changed() == 0 && steps_.obstacle().empty();
  if (facts || steps || evals) ++revision_;
  return facts || steps || evals;
}

bool LiveRun::poll_facts() {
  const bool other_run = run_file_.changed(folder_ / io::kRunFile);
  const bool other_config = config_file_.changed(folder_ / io::kConfigFile);
  if (other_run || other_config) read_facts();
  return other_run || other_config;
}

void LiveRun::read_facts() {
  facts_ = {};
  facts_.dir = name_;
  read_info(folder_, facts_);
  read_config(folder_ / io::kConfigFile, facts_);
  facts_.config_text.clear();
  facts_.variant = !facts_.label.empty() ? facts_.label : !facts_.scheme.empty() ? facts_.scheme : name_;
}

bool LiveRun::poll_steps() {
  const std::string obstacle = steps_.obstacle();
  const runs::TailChange change = steps_.look();
  const bool anew = change == runs::TailChange::restarted || change == runs::TailChange::gone;
  if (anew) forget_steps();
  if (change == runs::TailChange::gone || (change == runs::TailChange::none && !more_)) {
    return anew || obstacle != steps_.obstacle();
  }
  runs::Notes notes;
  more_ = steps_.read([this](std::string_view line, const std::string& where) { take_step(line, where); }, notes);
  step_complaints_.add(notes);
  return true;
}

void LiveRun::forget_steps() {
  ++restarts_;
  curve_.clear();
  watch_.clear();
  snapshots_ = {};
  newest_losses_.clear();
  rate_ = tokens_per_s_ = samples_per_s_ = step_ms_ = kMissing;
  step_complaints_ = {};
  more_ = false;
}

void LiveRun::take_step(std::string_view line, const std::string& where) {
  runs::Notes notes;
  try {
    runs::StepRecord record = runs::read_step(line, where, &notes);
    if (record.step <= curve_.last_step()) snapshots_.forget_from(record.step);
    curve_.add(record.step, record.loss, record.grad_norm);
    watch_.take(record);
    newest_losses_.push_back(record.loss);
    if (newest_losses_.size() > runs::kLossWindow) newest_losses_.pop_front();
    if (std::isfinite(record.lr)) rate_ = record.lr;
    follow(record.tokens_per_s, tokens_per_s_);
    follow(record.samples_per_s, samples_per_s_);
    follow(record.step_ms, step_ms_);
    snapshots_.take(std::move(record));
  } catch (const DataError& error) {
    notes.push_back(error.what());
  }
  step_complaints_.add(notes);
}

bool LiveRun::poll_evals() {
  const std::string obstacle = evals_file_.obstacle();
  const runs::TailChange change = evals_file_.look();
  if (change == runs::TailChange::none) return obstacle != evals_file_.obstacle();
  if (change != runs::TailChange::grown) {
    evals_.clear();
    ++evals_epoch_;
    eval_complaints_ = {};
  }
  runs::Notes notes;
  const auto take = [this](std::string_view line, const std::string& where) { take_eval(line, where); };
  while (evals_file_.read(take, notes)) {
  }
  eval_complaints_.add(notes);
  return true;
}

void LiveRun::take_eval(std::string_view line, const std::string& where) {
  runs::Notes notes;
  try {
    const runs::EvalRecord record = runs::read_eval(line, where, &notes);
    const double accuracy =
        record.accuracy && record.accuracy->count > 0
            ? static_cast<double>(record.accuracy->correct) / static_cast<double>(record.accuracy->count)
        : record.classification ? record.classification->top1.share()
                                : kMissing;
    if (!evals_.empty() && record.step <= evals_.back().step) {
      std::erase_if(evals_, [&](const EvalPoint& point) { return point.step >= record.step; });
      ++evals_epoch_;
    }
    evals_.push_back({record.step, record.loss, accuracy});
    if (evals_.size() > kMostEvals) {  // every other one; the newest stays
      size_t next = 0;
      for (size_t at = evals_.size() % 2 == 0 ? 1 : 0; at < evals_.size(); at += 2) evals_[next++] = evals_[at];
      evals_.resize(next);
      ++evals_epoch_;
    }
  } catch (const DataError& error) {
    notes.push_back(error.what());
  }
  eval_complaints_.add(notes);
}

RunState LiveRun::state() const {
  return facts_.state == RunState::not_started && curve_.last_step() > 0 ? RunState::unknown : facts_.state;
}

int64_t LiveRun::step() const { return std::max(facts_.step, curve_.last_step()); }

double LiveRun::train_loss() const {
  return runs::mean_of_last(std::vector<double>(newest_losses_.begin(), newest_losses_.end()));
}

std::vector<std::string> LiveRun::notes() const {
  std::vector<std::string> said = facts_.notes;
  for (const runs::LineTail* tail : {&steps_, &evals_file_}) {
    if (!tail->obstacle().empty()) said.push_back(tail->obstacle());
  }
  step_complaints_.add_to(said);
  eval_complaints_.add_to(said);
  for (const std::string& note : snapshots_.notes()) said.push_back(note);
  if (steps_.torn() && !more_ && state() != RunState::running) {
    said.push_back(std::string(io::kMetricsFile) + ": its last line is half-written: its writer was killed");
  }
  return said;
}

std::vector<Alert> LiveRun::alerts() const {
  std::vector<Alert> found = watch_.alerts(curve_, state() == RunState::running);
  const bool ended_badly = facts_.state == RunState::diverged || facts_.state == RunState::stopped;
  if (facts_.state == RunState::diverged || (ended_badly && !facts_.message.empty())) {
    found.push_back({std::string(state_text(facts_.state)), step(),
                     facts_.message.empty() ? fmt::format("at step {}", step()) : facts_.message});
  }
  for (const std::string& note : notes()) found.push_back({"file", step(), note});
  return found;
}

}  // namespace siamese::report
