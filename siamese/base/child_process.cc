#include "siamese/base/child_process.h"

#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "siamese/base/check.h"

namespace siamese {
namespace {

[[noreturn]] void fail(const std::string& what, int error) { throw SystemError(what + ": " + std::strerror(error)); }

}  // namespace

std::string ProcessEnd::text() const {
  return signal != 0 ? "signal " + std::to_string(signal) : "exit code " + std::to_string(code);
}

ChildProcess::ChildProcess(const std::string& program, const std::vector<std::string>& words, Through through) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail("pipe", errno);
  std::vector<char*> argv;
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  if (through == Through::out_and_error) posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  const int error = posix_spawn(&process_, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    fail(program + ": cannot be started", error);
  }
  output_ = ends[0];
}

ChildProcess::~ChildProcess() {
  close(output_);
  if (process_ == 0) return;
  send(SIGKILL);
  waitpid(process_, nullptr, 0);
}

bool ChildProcess::read(std::string& text, int milliseconds) {
  pollfd waiting{output_, POLLIN, 0};
  const int ready = poll(&waiting, 1, milliseconds);
  if (ready == 0 || (ready < 0 && errno == EINTR)) return true;
  char buffer[4096];
  const ssize_t count = ::read(output_, buffer, sizeof buffer);
  if (count < 0) return errno == EINTR;
  text.append(buffer, static_cast<size_t>(count));
  return count > 0;
}

void ChildProcess::send(int signal) const {
  if (process_ != 0) kill(process_, signal);
}

ProcessEnd ChildProcess::wait() {
  int status = 0;
  while (waitpid(process_, &status, 0) < 0) {
    if (errno != EINTR) fail("waitpid", errno);
  }
  process_ = 0;
  return WIFSIGNALED(status) ? ProcessEnd{0, WTERMSIG(status)} : ProcessEnd{WEXITSTATUS(status), 0};
}

}  // namespace siamese
