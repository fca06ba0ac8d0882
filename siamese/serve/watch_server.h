// The HTTP door of a live page: reads run directories, writes nothing, listens on the loopback alone.
//   GET /             the page
//   GET /events       what is new, as server-sent events (report/live_runs.h)
//   GET /depth/ID     the recorded profiles of a run
//   GET /report/ID    the report of a run as it is now
// A request must name this machine in its Host header: a page elsewhere whose name was made to lead here (DNS
// rebinding) gets nothing.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace siamese::serve {

struct WatchOptions {
  std::vector<std::filesystem::path> sources;
  int port = 8010;          // 0: one that is free
  double seconds = 1;       // between two looks at the files
  size_t connections = 64;  // answered at a time
  size_t streams = 32;      // of these at most, for /events: one for each open page
};

// "127.0.0.1:8010", "localhost", "[::1]:8010": a Host that means this machine.
bool names_this_machine(std::string_view host);

class WatchServer {
 public:
  // DataError about a source, SystemError when it cannot listen there.
  explicit WatchServer(const WatchOptions& options);
  ~WatchServer();

  int port() const;
  size_t runs() const;  // found so far
  // Looks at the files until `stop` (asked ten times a second) is true, then closes all connections.
  void run(const std::function<bool()>& stop);

 private:
  class Door;
  std::unique_ptr<Door> door_;
};

}  // namespace siamese::serve
