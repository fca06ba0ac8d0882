// A program in a process of its own, and what it prints. Made by exec, not by fork alone: threads of LibTorch and
// OpenMP do not survive a fork.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace siamese {

// How a process ended: by itself, or by a signal (then `signal` is not 0).
struct ProcessEnd {
  int code = 0;
  int signal = 0;

  bool well() const { return code == 0 && signal == 0; }
  std::string text() const;  // "exit code 3", "signal 9"
};

class ChildProcess {
 public:
  enum class Through { out, out_and_error };  // what comes through the pipe; the rest goes where ours goes

  // `words`: what the program sees as its arguments, its name first. SystemError when it cannot be started.
  ChildProcess(const std::string& program, const std::vector<std::string>& words, Through through);
  ~ChildProcess();  // one that still runs is killed
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Waits until it prints or ends, at most so long (-1: for ever); adds to `text`. False once all has been read and
  // nothing can come any more. Returns early when a signal comes.
  bool read(std::string& text, int milliseconds);
  int descriptor() const { return output_; }  // for poll()

  void send(int signal) const;
  ProcessEnd wait();

 private:
  pid_t process_ = 0;
  int output_ = -1;
};

}  // namespace siamese
