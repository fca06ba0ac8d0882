#include "siamese/base/thread_room.h"

#include <fstream>
#include <latch>
#include <system_error>
#include <thread>
#include <vector>

#include <sys/resource.h>

namespace siamese {
namespace {

// pids.max of the cgroup (version 2) that this process is in; empty when there is none to be read, or it is "max".
std::string cgroup_limit() {
  std::ifstream own("/proc/self/cgroup");
  std::string group, limit;
  while (std::getline(own, group)) {
    if (!group.starts_with("0::")) continue;
    std::ifstream file("/sys/fs/cgroup" + group.substr(3) + "/pids.max");
    if (std::getline(file, limit) && limit != "max") return limit;
  }
  return "";
}

}  // namespace

int startable_threads(int count) {
  std::vector<std::thread> threads;
  std::latch all_asked(1);
  try {
    threads.reserve(static_cast<size_t>(count));
    while (static_cast<int>(threads.size()) < count) threads.emplace_back([&] { all_asked.wait(); });
  } catch (const std::exception&) {  // no room for the thread, or for its stack
  }
  all_asked.count_down();
  for (std::thread& thread : threads) thread.join();
  return static_cast<int>(threads.size());
}

std::string thread_limits() {
  std::string text;
  rlimit limit{};
  if (getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    text = "ulimit -u " + std::to_string(limit.rlim_cur) + ", the processes and threads of this user";
  }
  if (const std::string group = cgroup_limit(); !group.empty()) {
    text += (text.empty() ? "" : "; ") + ("pids.max " + group + " of its cgroup");
  }
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    text += (text.empty() ? "" : "; ") + ("ulimit -v " + std::to_string(limit.rlim_cur >> 10) + ", its memory");
  }
  return text.empty() ? "a limit of the system" : text;
}

}  // namespace siamese
