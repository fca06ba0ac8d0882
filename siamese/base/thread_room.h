// May this process start so many threads more? OpenMP ends the program when it may not, with a line that names neither
// what was asked for nor what stands in the way; so we ask first.
#pragma once

#include <string>

namespace siamese {

// How many of `count` threads could be started at the same time, on top of those that run. They end at once.
int startable_threads(int count);

// "ulimit -u 4, the processes and threads of this user": what keeps a process from starting more threads, as far as the
// system tells.
std::string thread_limits();

}  // namespace siamese
