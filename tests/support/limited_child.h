// A child process that may do less than the test: root is bound neither by permissions nor by the limit of processes.
#pragma once

#include <exception>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace siamese {

// Runs `action`, which says whether all was well, as nobody where the test is root. True when it said so.
template <class Action>
bool holds_as_nobody(Action action) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) ::_exit(3);
    bool held = false;
    try {
      held = action();
    } catch (const std::exception&) {
    }
    ::_exit(held ? 0 : 1);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

inline void allow_no_more_threads() {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_NPROC, &none);
}

}  // namespace siamese
