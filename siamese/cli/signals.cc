#include "siamese/cli/signals.h"

#include <csignal>

#include <time.h>
#include <unistd.h>

#include "siamese/base/check.h"

namespace siamese::cli {
namespace {

constexpr int kStops[] = {SIGINT, SIGTERM, SIGHUP};
constexpr int kWarnings[] = {SIGUSR1, SIGUSR2, SIGXCPU};

volatile std::sig_atomic_t caught = 0;
volatile std::sig_atomic_t asked_to_stop = 0;
volatile std::sig_atomic_t first_second = 0;

// Only what a signal handler may call.
void note_stop(int signal) {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const auto second = static_cast<std::sig_atomic_t>(now.tv_sec);
  if (caught == 0) caught = signal;
  if (asked_to_stop == 0) {
    asked_to_stop = 1;
    first_second = second;
  } else if (second - first_second > 1) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

void note_warning(int signal) {
  if (caught == 0) caught = signal;
}

void explain_and_leave(int) {
  static constexpr char kMessage[] = "siamese: a file that is being read was cut short (SIGBUS)\n";
  if (write(STDERR_FILENO, kMessage, sizeof kMessage - 1) < 0) {
    // There is nobody left to tell.
  }
  _exit(static_cast<int>(Exit::bad_data));
}

}  // namespace

void catch_signals() {
  struct sigaction action = {};
  action.sa_handler = note_stop;
  action.sa_flags = SA_RESTART;
  for (const int other : kStops) sigaddset(&action.sa_mask, other);  // one at a time
  for (const int other : kWarnings) sigaddset(&action.sa_mask, other);
  for (const int signal : kStops) {
    struct sigaction before = {};
    const bool ignored = sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN;
    // nohup. (Whoever sends SIGINT to a job that a script put into the background, where it is ignored, means it.)
    if (signal == SIGHUP && ignored) continue;
    sigaction(signal, &action, nullptr);
  }
  action.sa_handler = note_warning;
  for (const int signal : kWarnings) sigaction(signal, &action, nullptr);
}

int caught_signal() { return caught; }

void explain_cut_files() {
  struct sigaction action = {};
  action.sa_handler = explain_and_leave;
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace siamese::cli
