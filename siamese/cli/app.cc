#include "siamese/cli/app.h"

#include <cstdio>
#include <exception>

#include <CLI/CLI.hpp>
#include <poll.h>
#include <unistd.h>

#include "siamese/base/check.h"
#include "siamese/base/join.h"
#include "siamese/base/nearest.h"
#include "siamese/base/utf8.h"
#include "siamese/cli/together.h"
#include "siamese/cli/verbs.h"
#include "siamese/cli/version.h"
#include "siamese/train/config.h"
#include "siamese/train/failure_text.h"

namespace siamese::cli {
namespace {

int fail(Exit code, const std::string& message) {
  constexpr size_t kLongest = 2000;
  if (!speaks_for_all()) return 0;  // the job's exit code is rank 0's, which says the same
  std::fprintf(stderr, "siamese: %s\n", printable(message, kLongest).c_str());
  return static_cast<int>(code);
}

// An empty list is no default worth showing.
void hide_empty_defaults(CLI::App& app) {
  for (auto* const option : app.get_options()) {
    if (option->get_default_str() == "[]") option->default_str("");
  }
  for (auto* const verb : app.get_subcommands({})) hide_empty_defaults(*verb);
}

// `| head`: whoever read has what it wanted, and there is nothing to complain about.
bool reader_is_gone() {
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  return poll(&output, 1, 0) > 0 && (output.revents & POLLERR) != 0;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// CLI11 would only say that some verb is missing. Verbs that have verbs of their own (config check) are asked on.
void check_verb(const CLI::App& app, int argc, char** argv) {
  const CLI::App* of = &app;
  for (int i = 1; i < argc && argv[i][0] != '-'; ++i) {
    std::vector<std::string> verbs;
    const CLI::App* found = nullptr;
    for (const CLI::App* verb : of->get_subcommands({})) {
      verbs.push_back(verb->get_name());
      if (verbs.back() == argv[i]) found = verb;
    }
    if (verbs.empty()) return;
    if (found == nullptr) {
      throw UsageError("unknown verb '" + std::string(argv[i]) + "'" + did_you_mean(argv[i], verbs) +
                       "; known: " + join(verbs));
    }
    of = found;
  }
}

// The first option that the verb does not have, "" when there is none. Asked when CLI11 misses a required one too: that
// may be what was meant.
std::string unknown_option(const CLI::App& app) {
  const CLI::App* verb = &app;
  while (!verb->get_subcommands().empty()) verb = verb->get_subcommands().front();
  std::vector<std::string> names;
  for (const CLI::Option* const option : verb->get_options()) {
    if (option->get_group().empty()) continue;  // a hidden one
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (const std::string& argument : app.remaining(true)) {
    if (argument.size() < 2 || argument[0] != '-' || argument == "--") continue;
    const std::string given = argument.substr(0, argument.find('='));
    const bool one_letter = given.size() == 2;
    return "unknown option '" + given + "'" + (one_letter ? "" : did_you_mean(given, names));
  }
  return "";
}

}  // namespace

int run(int argc, char** argv) {
  CLI::App app("Trains, resumes, evaluates and compares Transformers with any residual scheme.", "siamese");
  int exit_code = 0;
  app.option_defaults()->always_capture_default();  // every verb inherits it: --help shows them
  app.set_help_all_flag("--help-all", "Help of every verb");
  app.set_version_flag(
      "--version", [] { return version_text(); }, "Versions of siamese and LibTorch, SIMD level, threads");
  app.require_subcommand(1);
  app.footer(
      "Example: siamese train arithmetic-small model.residual=siamese optim.lr=2e-3 --out runs/x\n"
      "Exit codes: 0 ok, 1 failure, 2 usage or config, 3 bad data or checkpoint, 4 diverged, 75 stopped by\n"
      "train.max_hours after saving, 128 + n stopped by signal n after saving.");
  add_train(app, exit_code);
  add_resume(app, exit_code);
  add_eval(app, exit_code);
  add_analyze(app);
  add_generate(app);
  add_sample(app);
  add_upcycle(app);
  add_probe(app);
  add_inspect(app);
  add_convert(app);
  add_tokenizer(app);
  add_prepare(app, exit_code);
  add_serve(app);
  add_sweep(app, exit_code);
  add_report(app);
  add_watch(app);
  add_bench(app);
  add_config(app);
  add_plan(app);
  add_schemes(app);
  hide_empty_defaults(app);
  try {
    check_verb(app, argc, argv);
    if (argc > 1) check_alone(argv[1], argc > 2 ? argv[2] : "");
    train::limit_threads();
    app.parse(argc, argv);
    const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
    if (!written && !reader_is_gone()) return fail(Exit::failure, "cannot write to the output");
    return exit_code;
  } catch (const CLI::Success& wanted) {  // --help, --version
    return app.exit(wanted);
  } catch (const CLI::ParseError& error) {
    const std::string unknown = unknown_option(app);
    return fail(Exit::usage, (unknown.empty() ? first_line(error.what()) : unknown) + " (try --help)");
  } catch (const Error& error) {
    return fail(error.code(), error.what());
  } catch (const std::exception& error) {
    return fail(Exit::failure, train::failure_text(error));
  }
}

}  // namespace siamese::cli
