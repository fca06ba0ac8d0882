#include "siamese/cli/signals.h"

#include <csignal>

namespace siamese::cli {
namespace {

volatile std::sig_atomic_t caught = 0;

void note_signal(int signal) {
  caught = signal;
  for (const int other : {SIGINT, SIGTERM}) std::signal(other, SIG_DFL);
}

}  // namespace

void catch_signals() {
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction action = {};
    action.sa_handler = note_signal;
    action.sa_flags = SA_RESTART;
    sigaction(signal, &action, nullptr);
  }
}

int caught_signal() { return caught; }

}  // namespace siamese::cli
