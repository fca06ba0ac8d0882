// The group of an MPI job. This file alone knows MPI; it is a library of its own (libsiamese_mpi.so), which the command
// line loads when it was started by mpirun or srun: a plain start does not pay for it, and a machine without MPI has
// the same binary.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include <mpi.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "siamese/base/check.h"
#include "siamese/comm/group.h"
#include "siamese/comm/mpi_library.h"

namespace siamese::comm {
namespace {

using Clock = std::chrono::steady_clock;

std::string host_name() {
  char name[256] = "";
  return gethostname(name, sizeof name - 1) == 0 ? name : "an unnamed host";
}

int rank_in_world() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int size_of_world() {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

class MpiGroup : public Group {
 public:
  explicit MpiGroup(bool has_threads)
      : Group(rank_in_world(), size_of_world(), host_name()), has_threads_(has_threads) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }
  ~MpiGroup() override { MPI_Finalize(); }

  void all_to_all(const std::byte* send, std::byte* receive, size_t bytes) override {
    MPI_Request request;
    check(MPI_Ialltoall(send, count(bytes), MPI_BYTE, receive, count(bytes), MPI_BYTE, MPI_COMM_WORLD, &request));
    wait(request);
  }
  void all_gather(const std::byte* mine, std::byte* all, size_t bytes) override {
    MPI_Request request;
    check(MPI_Iallgather(mine, count(bytes), MPI_BYTE, all, count(bytes), MPI_BYTE, MPI_COMM_WORLD, &request));
    wait(request);
  }
  void from_leader(std::byte* data, size_t bytes) override {
    MPI_Request request;
    check(MPI_Ibcast(data, count(bytes), MPI_BYTE, 0, MPI_COMM_WORLD, &request));
    wait(request, leads() ? kOthers : "rank 0");
  }
  void set_timeout(double seconds) override { timeout_ = std::chrono::duration<double>(seconds); }
  bool has_threads() const override { return has_threads_; }
  [[noreturn]] void end_all(int exit_code) override {
    std::fflush(nullptr);
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    _exit(exit_code);
  }

 private:
  int count(size_t bytes) const {
    if (bytes > static_cast<size_t>(std::numeric_limits<int>::max())) {
      throw SystemError(name() + ": MPI: expected at most 2 GiB in one message, got " + std::to_string(bytes));
    }
    return static_cast<int>(bytes);
  }
  void check(int code) const {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    throw SystemError(name() + ": MPI: " + text);
  }
  // Asks again and again, at first without a pause (an answer takes microseconds), then leaving the core to others:
  // there may be more ranks than cores.
  void wait(MPI_Request& request, const char* whom = kOthers) const {
    const auto start = Clock::now();
    for (int64_t asked = 0;; ++asked) {
      int done = 0;
      check(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
      if (done != 0) return;
      if (asked < 200) continue;
      const auto waited = Clock::now() - start;
      if (timeout_.count() > 0 && waited > timeout_) {
        char seconds[32];
        std::snprintf(seconds, sizeof seconds, "%g", timeout_.count());
        throw Unanswered(name() + ": " + whom + " did not answer for " + seconds + " s (engine.timeout)");
      }
      if (waited < std::chrono::milliseconds(20)) {
        sched_yield();
      } else {
        const timespec pause{0, 50'000};
        nanosleep(&pause, nullptr);
      }
    }
  }

  static constexpr const char* kOthers = "the other ranks";

  bool has_threads_;
  std::chrono::duration<double> timeout_{0};
};

}  // namespace
}  // namespace siamese::comm

siamese::comm::Group* siamese_join_mpi() {
  int given = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &given) != MPI_SUCCESS) return nullptr;
  return new siamese::comm::MpiGroup(given >= MPI_THREAD_SERIALIZED);
}
