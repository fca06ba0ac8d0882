#include "siamese/cli/own_process.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "siamese/base/check.h"

namespace siamese::cli {
namespace own_process {

[[noreturn]] void fail(const char* what, int error) {
  throw SystemError(fmt::format("{}: {}", what, std::strerror(error)));
}

// Both ends close with the object; the reading one is not inherited.
class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_, O_CLOEXEC) != 0) fail("pipe", errno);
  }
  ~Pipe() {
    close(ends_[0]);
    close_write();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int write_end() const { return ends_[1]; }
  void close_write() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }
  std::string read_all() const {
    std::string text;
    char buffer[4096];
    while (true) {
      const ssize_t count = read(ends_[0], buffer, sizeof buffer);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return text;
      text.append(buffer, static_cast<size_t>(count));
    }
  }

 private:
  int ends_[2] = {-1, -1};
};

pid_t start(const std::vector<std::string>& words, int output) {
  std::vector<char*> argv = {const_cast<char*>("siamese")};
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  pid_t process = 0;
  const int error = posix_spawn(&process, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) fail("starting siamese once more", error);
  return process;
}

}  // namespace own_process

std::string output_of_own_process(const std::vector<std::string>& words) {
  own_process::Pipe pipe;
  const pid_t process = own_process::start(words, pipe.write_end());
  pipe.close_write();
  std::string text = pipe.read_all();
  int status = 0;
  while (waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) own_process::fail("waitpid", errno);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
  const std::string end =
      WIFEXITED(status) ? fmt::format("exit code {}", WEXITSTATUS(status)) : fmt::format("signal {}", WTERMSIG(status));
  throw SystemError(fmt::format("siamese {}: ended with {}", fmt::join(words, " "), end));
}

}  // namespace siamese::cli
