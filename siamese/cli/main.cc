#include <csignal>
#include <cstdlib>
#include <limits>

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include "siamese/cli/app.h"
#include "siamese/cli/signals.h"

namespace {

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
  siamese::cli::explain_cut_files();
  return siamese::cli::run(argc, argv);
}
