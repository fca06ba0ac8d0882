#include <csignal>
#include <cstdlib>
#include <exception>
#include <limits>
#include <new>
#include <string_view>
#include <typeinfo>

#include <cxxabi.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include "siamese/base/check.h"
#include "siamese/cli/app.h"
#include "siamese/cli/huge_pages.h"
#include "siamese/cli/signals.h"

// tcmalloc's own word about memory that it does not get, where the binary is linked with it.
namespace tcmalloc {
extern void (*log_message_writer)(const char* message, int length) __attribute__((weak));
}

namespace {

void say(std::string_view text) {
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) {
    // There is nobody left to tell.
  }
}

[[noreturn]] void leave(std::string_view why) {
  say(why);
  _exit(static_cast<int>(siamese::Exit::failure));
}

constexpr std::string_view kOutOfMemory = "siamese: out of memory\n";

// An error that nobody can catch: one while LibTorch's tables are filled before main, or in a thread that is not ours.
// Without memory the message must need none.
[[noreturn]] void explain_terminate() {
  const std::type_info* const type = abi::__cxa_current_exception_type();
  if (type != nullptr && *type == typeid(std::bad_alloc)) leave(kOutOfMemory);
  say("siamese: internal error: an exception that was not caught: ");
  say(type != nullptr ? type->name() : "none");
  say("\n");
  std::abort();
}

// Its notes are not for users: an allocation that fails is said by whoever asked. After the fatal one it would abort.
void quiet_tcmalloc(const char* message, int length) {
  if (std::string_view(message, static_cast<size_t>(length)).find("FATAL") != std::string_view::npos) {
    leave(kOutOfMemory);
  }
}

// Before the constructors of the libraries: under a tiny limit on memory they are the first to fail.
void prepare(int, char**, char**) {
  constexpr rlim_t kLeastStack = 128 << 10;
  rlimit stack{};
  if (getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < kLeastStack) {
    leave("siamese: the limit of the stack (ulimit -s): expected at least 128 KB\n");
  }
  std::set_terminate(explain_terminate);
  if (&tcmalloc::log_message_writer != nullptr) tcmalloc::log_message_writer = quiet_tcmalloc;
}
__attribute__((section(".preinit_array"), used)) void (*const prepare_first)(int, char**, char**) = prepare;

// LibTorch's OpenMP threads spin for milliseconds at every barrier. When another program wants the cores too, a step
// then waits thousands of times for a thread that is not running: two runs side by side were seen 4 to 50 times
// slower. A short spin costs a run that is alone about 5 %. The runtime reads this when it is loaded, before main, so
// the program starts itself once more; whoever sets one of these variables decides instead.
void wait_politely(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("GOMP_SPINCOUNT", "2000", 1);
  // By its own path, so that it keeps its name in lists of processes. Returns only when it failed; then the default
  // serves.
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0) return;
  path[length] = '\0';
  execv(path, argv);
}

// A step allocates and frees the same buffers again and again. By default large ones are mapped from the system and
// given back each time, and the kernel zeroes every page anew at first touch; here freed memory stays with the process.
// (For builds without tcmalloc, which does so by itself.)
void keep_memory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TOP_PAD, 64 << 20);  // grow in steps that are worth a system call
}

// A file that is opened must never take the number of a closed standard stream, or messages would land in it; and a
// reader of the progress that goes away, or a file that may not grow (ulimit -f), must not end the run: writing then
// fails, and says so.
void mind_streams() {
  while (true) {
    const int descriptor = open("/dev/null", O_RDWR);
    if (descriptor < 0) return;
    if (descriptor > 2) {
      close(descriptor);
      break;
    }
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace

int main(int argc, char** argv) {
  mind_streams();
  wait_politely(argv);
  keep_memory();
  siamese::cli::use_huge_pages();
  siamese::cli::explain_cut_files();
  return siamese::cli::run(argc, argv);
}
