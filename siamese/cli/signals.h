// Ctrl-C and SIGTERM ask for a stop after the current step; a second one kills as usual.
#pragma once

namespace siamese::cli {

void catch_signals();
int caught_signal();  // SIGINT, SIGTERM, or 0

// 128 + signal, as shells report it.
inline int exit_code_of(int signal) { return 128 + signal; }

}  // namespace siamese::cli
