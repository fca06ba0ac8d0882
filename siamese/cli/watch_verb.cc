#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>

#include "siamese/cli/signals.h"
#include "siamese/cli/verbs.h"
#include "siamese/serve/watch_server.h"

namespace siamese::cli {
namespace watch_verb {

struct Arguments {
  std::vector<std::string> folders;
  serve::WatchOptions options;
};

void run(const Arguments& arguments) {
  serve::WatchOptions options = arguments.options;
  for (const std::string& folder : arguments.folders) options.sources.emplace_back(folder);
  catch_signals();
  serve::WatchServer server(options);
  std::printf("watching at http://127.0.0.1:%d\n", server.port());
  std::fflush(stdout);
  server.run([] { return caught_signal() != 0; });
}

}  // namespace watch_verb

void add_watch(CLI::App& app) {
  auto* const verb = app.add_subcommand("watch", "A live page about runs while they train, for this machine alone");
  const auto arguments = std::make_shared<watch_verb::Arguments>();
  serve::WatchOptions& options = arguments->options;
  verb->add_option("DIRS", arguments->folders, "Run directories, sweeps, folders of them; runs may come and go")
      ->required();
  verb->add_option("--port", options.port, "0 = one that is free; printed")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  verb->add_option("--interval", options.seconds, "Seconds between two looks at the files")
      ->check(CLI::Range(0.05, 3600.0))
      ->capture_default_str();
  verb->footer("Example: siamese watch runs/demo runs/pre --port 8010");
  verb->callback([arguments] { watch_verb::run(*arguments); });
}

}  // namespace siamese::cli
