#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>

#include "siamese/cli/verbs.h"
#include "siamese/report/report.h"

namespace siamese::cli {

void add_report(CLI::App& app) {
  auto* const verb = app.add_subcommand("report", "One offline HTML file about a run or a sweep");
  const auto path = std::make_shared<std::string>();
  const auto json = std::make_shared<bool>(false);
  verb->add_option("RUN_OR_SWEEP", *path, "A run directory or the directory of a sweep")->required();
  verb->add_flag("--json", *json, "Print the results as one JSON object instead of writing a page");
  verb->footer("Example: siamese report runs/demo");
  verb->callback([path, json] {
    std::printf("%s\n", *json ? report::results_line(*path).c_str() : report::write_report(*path).c_str());
  });
}

}  // namespace siamese::cli
