// Ctrl-C, SIGTERM and a terminal that goes away ask for a stop after the current step; whoever asks again a second
// later kills as usual. One request may arrive twice at once: `timeout`, mpirun and batch systems signal the process
// and then its group.
#pragma once

namespace siamese::cli {

void catch_signals();
int caught_signal();  // SIGINT, SIGTERM, SIGHUP, or 0

// 128 + signal, as shells report it.
inline int exit_code_of(int signal) { return 128 + signal; }

}  // namespace siamese::cli
