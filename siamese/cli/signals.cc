#include "siamese/cli/signals.h"

#include <csignal>

#include <time.h>

namespace siamese::cli {
namespace {

constexpr int kStops[] = {SIGINT, SIGTERM, SIGHUP};

volatile std::sig_atomic_t caught = 0;
volatile std::sig_atomic_t first_second = 0;

// Only what a signal handler may call.
void note_signal(int signal) {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const auto second = static_cast<std::sig_atomic_t>(now.tv_sec);
  if (caught == 0) {
    caught = signal;
    first_second = second;
  } else if (second - first_second > 1) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

void catch_signals() {
  for (const int signal : kStops) {
    struct sigaction action = {};
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) continue;  // nohup
    action = {};
    action.sa_handler = note_signal;
    action.sa_flags = SA_RESTART;
    sigaction(signal, &action, nullptr);
  }
}

int caught_signal() { return caught; }

}  // namespace siamese::cli
