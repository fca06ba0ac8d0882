// Ctrl-C, SIGTERM and a terminal that goes away ask for a stop after the current step; whoever asks again two
// seconds later kills as usual. One request may arrive twice at once: `timeout`, mpirun and batch systems signal the
// process and then its group. SIGUSR1, SIGUSR2 and SIGXCPU ask for the same and never kill: they are the warnings of
// batch systems (`sbatch --signal=USR1@120`) and of a limit on processor time, which repeats its own every second.
#pragma once

namespace siamese::cli {

void catch_signals();
int caught_signal();  // the first that came, or 0

// A mapped file that somebody cut short: one line and exit code 3 instead of a core dump.
void explain_cut_files();

}  // namespace siamese::cli
