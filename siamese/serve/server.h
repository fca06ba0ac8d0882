// The HTTP door of a model:
//   POST /v1/completions    OpenAI's completions, also as a stream of events
//   GET  /v1/models         the one that is served
//   GET  /health            for whoever watches it; needs no token
// Listens on its own threads; the model stays with the thread that calls run().
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "siamese/eval/words.h"
#include "siamese/models/lm.h"
#include "siamese/serve/completion_request.h"

namespace siamese::serve {

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 8000;    // 0: one that is free
  std::string model;  // what /v1/models calls it
  std::string token;  // "": none is asked for
  size_t body_bytes = size_t{8} << 20;
  size_t queue = 1024;      // sequences that may wait
  size_t connections = 96;  // answered at a time
  double seconds = 300;     // of one request
  RequestLimits limits;
};

class Server {
 public:
  // Both must outlive it. SystemError when it cannot listen there.
  Server(const models::LanguageModel& model, const eval::Words& words, const ServerOptions& options);
  ~Server();

  int port() const;
  // Serves until `stop` (asked ten times a second at least) is true; then who waits for an answer is told that there
  // will be none (503), and all connections are closed.
  void run(const std::function<bool()>& stop);

 private:
  class Door;
  std::unique_ptr<Door> door_;
};

}  // namespace siamese::serve
