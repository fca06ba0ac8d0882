#include "siamese/train/sweep_workers.h"

#include <algorithm>
#include <chrono>
#include <csignal>

#include <fmt/format.h>
#include <poll.h>

namespace siamese::train {
namespace {

constexpr int kMomentMs = 200;
constexpr int kSignalExit = 128;

// The line without the name of the program before it.
std::string without_program(const std::string& line) {
  const size_t colon = line.find(": ");
  return line.starts_with("siamese: ") ? line.substr(colon + 2) : line;
}

Exit exit_of(const ProcessEnd& end) {
  const bool known =
      end.signal == 0 && (end.code == static_cast<int>(Exit::usage) || end.code == static_cast<int>(Exit::bad_data));
  return known ? static_cast<Exit>(end.code) : Exit::failure;
}

}  // namespace

// An error of the sweep itself, as a record that cannot be written, costs no run what it has done.
RunResult SweepWorkers::train() {
  try {
    return train_all();
  } catch (...) {
    for (const Worker& worker : workers_) {
      if (worker.process) worker.process->send(SIGTERM);
    }
    for (Worker& worker : workers_) {
      while (worker.process && worker.process->read(worker.text, -1)) {
      }
      if (worker.process) worker.process->wait();
    }
    throw;
  }
}

RunResult SweepWorkers::train_all() {
  while (true) {
    ask_to_stop();
    while (!stopping_ && !hours_over_ && !all_begun() && static_cast<int64_t>(workers_.size()) < sweep_.options_.jobs)
      begin_next();
    if (workers_.empty() && (hours_over_ || stopping_ || all_begun())) break;
    listen();
  }
  const bool stopped = left_over_ || !all_begun();
  return stopped ? RunResult{RunStatus::stopped, signal_} : RunResult{RunStatus::finished, 0};
}

bool SweepWorkers::out_of_time(const PlannedRun& run) const {
  const double hours = run.config.train.max_hours;
  const std::chrono::duration<double, std::ratio<3600>> passed = std::chrono::steady_clock::now() - hooks_.run.begun;
  return hours > 0 && passed.count() >= hours;
}

// Once: a process that is asked again later takes that for impatience and ends without saving.
void SweepWorkers::ask_to_stop() {
  if (stopping_) return;
  signal_ = hooks_.run.stop_signal ? hooks_.run.stop_signal() : 0;
  hours_over_ = hours_over_ || std::any_of(workers_.begin(), workers_.end(),
                                           [&](const Worker& worker) { return out_of_time(*worker.run); });
  if (signal_ == 0 && !hours_over_) return;
  stopping_ = true;
  for (const Worker& worker : workers_) worker.process->send(signal_ != 0 ? signal_ : SIGTERM);
}

void SweepWorkers::begin_next() {
  const PlannedRun& run = sweep_.plan_.runs[next_];
  const std::string place = fmt::format("[{}/{}] {}", next_ + 1, sweep_.plan_.runs.size(), run.dir);
  if (const auto why = sweep_.left_as_it_is(run)) {
    if (hooks_.say && !sweep_.said_.contains(run.dir)) hooks_.say(place + ": " + *why);
    ++next_;
    return;
  }
  hours_over_ = out_of_time(run);
  if (hours_over_) return;
  const std::vector<std::string> command = hooks_.worker(run);
  if (command.empty()) throw UsageError("jobs: expected a command that trains " + run.dir + ", got none");
  if (hooks_.say) hooks_.say(place + ": begins");
  workers_.push_back(
      {&run, std::make_unique<ChildProcess>(command.front(), command, ChildProcess::Through::out_and_error)});
  ++next_;
}

void SweepWorkers::listen() {
  std::vector<pollfd> waiting;
  for (const Worker& worker : workers_) waiting.push_back({worker.process->descriptor(), POLLIN, 0});
  poll(waiting.data(), waiting.size(), kMomentMs);  // a signal ends it too
  for (size_t i = 0; i < waiting.size(); ++i) {
    if (waiting[i].revents == 0) continue;
    const bool more = workers_[i].process->read(workers_[i].text, 0);
    if (!more && !workers_[i].text.empty()) workers_[i].text += '\n';
    pass_on(workers_[i]);
    if (!more) end(workers_[i]);
  }
  std::erase_if(workers_, [](const Worker& worker) { return !worker.process; });
}

void SweepWorkers::pass_on(Worker& worker) {
  size_t from = 0;
  for (size_t end = worker.text.find('\n'); end != std::string::npos; end = worker.text.find('\n', from)) {
    const std::string line = worker.text.substr(from, end - from);
    from = end + 1;
    if (line.empty()) continue;
    worker.last_line = line;
    if (hooks_.worker_said) hooks_.worker_said(*worker.run, line);
  }
  worker.text.erase(0, from);
}

void SweepWorkers::end(Worker& worker) {
  const ProcessEnd end = worker.process->wait();
  worker.process.reset();
  const PlannedRun& run = *worker.run;
  if (end.well()) {
    sweep_.note_end(run);
    if (hooks_.say) hooks_.say(run.dir + ": " + sweep_.end_text(run));
    if (hooks_.run_ended) hooks_.run_ended();
    return;
  }
  const bool stopped = end.signal != 0 || end.code == static_cast<int>(Exit::resumable) || end.code > kSignalExit;
  if (stopping_ && stopped) {
    left_over_ = true;
    return;
  }
  const std::string why = worker.last_line.empty() ? "" : ": " + without_program(worker.last_line);
  sweep_.note_failure(run, exit_of(end), "its process ended with " + end.text() + why, hooks_);
}

}  // namespace siamese::train
