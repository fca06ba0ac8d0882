// Ctrl-C, SIGTERM and a terminal that goes away ask for a stop after the current step; whoever asks again two
// seconds later kills as usual. One request may arrive twice at once: `timeout`, mpirun and batch systems signal the
// process and then its group.
#pragma once

namespace siamese::cli {

void catch_signals();
int caught_signal();  // SIGINT, SIGTERM, SIGHUP, or 0

// A mapped file that somebody cut short: one line and exit code 3 instead of a core dump.
void explain_cut_files();

}  // namespace siamese::cli
