#include <algorithm>
#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>

#include "siamese/base/check.h"
#include "siamese/base/utf8.h"
#include "siamese/cli/language_model.h"
#include "siamese/cli/signals.h"
#include "siamese/cli/verbs.h"
#include "siamese/io/atomic_file.h"
#include "siamese/serve/server.h"

namespace siamese::cli {
namespace {

struct ServeArguments {
  std::string run;
  std::vector<std::string> overrides;
  std::string token_file;
  serve::ServerOptions options;
};

// The first line of the file: a token on the command line would be seen by everybody on the machine.
std::string read_token(const std::string& file) {
  std::string token = io::read_file(file);
  token.resize(std::min(token.find_first_of("\r\n"), token.size()));
  if (token.empty() || printable(token) != token || token.find(' ') != std::string::npos) {
    throw DataError(file + ": expected a token on its first line: printable characters without spaces");
  }
  return token;
}

bool is_loopback(const std::string& host) { return host == "localhost" || host == "::1" || host.starts_with("127."); }

void serve_run(const ServeArguments& arguments) {
  serve::ServerOptions options = arguments.options;
  if (!arguments.token_file.empty()) options.token = read_token(arguments.token_file);
  const auto [loaded, model] = load_language_model("serve", arguments.run, arguments.overrides);
  const auto words = train::words_of(loaded);
  if (options.model.empty()) options.model = arguments.run;
  catch_signals();
  serve::Server server(*model, *words, options);
  if (options.token.empty() && !is_loopback(options.host)) {
    std::fprintf(stderr, "serve: whoever reaches %s may ask: there is no token (--token-file)\n",
                 printable(options.host).c_str());
  }
  const bool bracketed = options.host.find(':') != std::string::npos;
  std::printf("serving %s at http://%s%s%s:%d\n", printable(options.model).c_str(), bracketed ? "[" : "",
              printable(options.host).c_str(), bracketed ? "]" : "", server.port());
  std::fflush(stdout);
  server.run([] { return caught_signal() != 0; });
}

}  // namespace

void add_serve(CLI::App& app) {
  auto* const verb = app.add_subcommand("serve", "Complete text over HTTP, as OpenAI's clients ask for it");
  const auto arguments = std::make_shared<ServeArguments>();
  serve::ServerOptions& options = arguments->options;
  verb->add_option("RUN", arguments->run, "A run directory (its latest) or a checkpoint")->required();
  verb->add_option("OVERRIDES", arguments->overrides, "key=value for the keys of engine, such as engine.threads=2");
  verb->add_option("--host", options.host, "Address to listen at")->capture_default_str();
  verb->add_option("--port", options.port, "0 = one that is free; printed")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  verb->add_option("--model", options.model, "What the model is called; RUN when not given");
  verb->add_option("--token-file", arguments->token_file,
                   "A file whose first line is the token that clients must bear");
  verb->add_option("--max-tokens", options.limits.max_tokens, "Most that a request may ask for")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30))
      ->capture_default_str();
  verb->add_option("--max-body", options.body_bytes, "Most bytes of a request")
      ->check(CLI::Range(size_t{1024}, size_t{100} << 20))
      ->capture_default_str();
  verb->add_option("--timeout", options.seconds, "Seconds that a request may take")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
  verb->add_option("--queue", options.queue, "Continuations that may wait; who asks for more is told to come again")
      ->check(CLI::Range(size_t{1}, size_t{1} << 20))
      ->capture_default_str();
  verb->add_option("--connections", options.connections, "Clients that are answered at a time; others wait")
      ->check(CLI::Range(size_t{1}, size_t{4096}))
      ->capture_default_str();
  verb->footer("Example: siamese serve runs/x --port 8000");
  verb->callback([arguments] { serve_run(*arguments); });
}

}  // namespace siamese::cli
