// The binary running beside the test: wait for a state, send a signal, see how it ended.
#pragma once

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>

#include "tests/cli/command.h"
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace siamese::cli {

class Background {
 public:
  // `arguments` and `before` ("ulimit -f 100") as in a shell. Runs in `folder`; its output goes to out.txt and
  // error.txt there. The process itself is the binary: no shell stands between it and a signal.
  Background(const std::filesystem::path& folder, const std::string& arguments, const std::string& before = ":") {
    const std::string command = "cd '" + folder.string() + "' && " + before + " && exec '" SIAMESE_BINARY "' " +
                                arguments + " > out.txt 2> error.txt < /dev/null";
    process_ = fork();
    if (process_ == 0) {
      // As from a terminal, also when the tests themselves run under nohup or behind an `&`.
      for (const int signal : {SIGINT, SIGHUP, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU}) std::signal(signal, SIG_DFL);
      execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
      _exit(127);
    }
  }
  ~Background() {
    if (ended()) return;
    send(SIGKILL);
    wait();
  }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  pid_t id() const { return process_; }
  void send(int signal) const { kill(process_, signal); }

  bool ended() {
    if (!reaped_ && waitpid(process_, &status_, WNOHANG) == process_) reaped_ = true;
    return reaped_;
  }

  // Processor time that it has used, in seconds: the machine's load does not change what was done in it.
  double processor_seconds() const {
    std::ifstream file("/proc/" + std::to_string(process_) + "/stat");
    std::string text{std::istreambuf_iterator<char>(file), {}};
    std::istringstream fields(text.substr(text.rfind(')') + 1));  // the name before it may hold anything
    std::string skipped;
    for (int field = 3; field < 14; ++field) fields >> skipped;
    double user = 0, system = 0;
    fields >> user >> system;
    return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  }

  // False when the process ended first, or nothing came of it in a time that is only for machines that hang.
  template <class Predicate>
  bool wait_until(Predicate holds) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(3);
    while (!holds()) {
      if (ended()) return holds();
      if (std::chrono::steady_clock::now() > limit) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
    return true;
  }

  // The exit code, or 1000 + the signal that ended it.
  int wait() {
    if (!wait_until([this] { return ended(); })) {
      ADD_FAILURE() << "did not end";
      send(SIGKILL);
      waitpid(process_, &status_, 0);
      reaped_ = true;
    }
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : 1000 + WTERMSIG(status_);
  }

 private:
  pid_t process_ = 0;
  int status_ = 0;
  bool reaped_ = false;
};

// True when `file` holds at least so many lines.
inline bool has_lines(const std::filesystem::path& file, int64_t count) {
  const std::string text = slurp(file);
  return std::count(text.begin(), text.end(), '\n') >= count;
}

}  // namespace siamese::cli
