#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>

#include "siamese/base/check.h"
#include "siamese/base/utf8.h"
#include "siamese/cli/verbs.h"
#include "siamese/io/result_file.h"
#include "siamese/report/event_files.h"
#include "siamese/report/report.h"

namespace siamese::cli {
namespace report_verb {

struct Arguments {
  std::vector<std::string> sources;
  std::string out;
  std::string csv;
  std::string tensorboard;
  bool json = false;
};

void run(const Arguments& arguments) {
  const bool csv_to_stdout = arguments.csv == "-";
  const bool two_files = !arguments.csv.empty() && !csv_to_stdout && !arguments.out.empty();
  if (two_files && io::same_place(arguments.csv, arguments.out)) {
    throw UsageError("--csv: expected another file than --out, got " + arguments.csv);
  }
  report::ReportRequest request;
  for (const std::string& source : arguments.sources) request.sources.emplace_back(source);
  if (arguments.json) {
    if (!arguments.out.empty() || !arguments.csv.empty() || !arguments.tensorboard.empty()) {
      throw UsageError(
          "--json: prints the results and writes no file: expected it without --out, --csv and --tensorboard");
    }
    std::printf("%s\n", report::results_line(request.sources).c_str());
    return;
  }
  request.page = arguments.out;
  if (!csv_to_stdout) request.csv = arguments.csv;
  std::vector<std::string> said;
  const auto page = report::write_report(request, &said);
  for (const std::string& line : said) std::fprintf(stderr, "siamese: %s\n", printable(line).c_str());
  if (!arguments.tensorboard.empty()) report::write_event_files(request.sources, arguments.tensorboard);
  if (csv_to_stdout) {
    std::printf("%s", report::results_csv(request.sources).c_str());
    return;
  }
  std::printf("%s\n", printable(page.string()).c_str());
  if (!request.csv.empty()) std::printf("%s\n", printable(request.csv.string()).c_str());
  if (!arguments.tensorboard.empty()) std::printf("%s\n", printable(arguments.tensorboard).c_str());
}

}  // namespace report_verb

void add_report(CLI::App& app) {
  auto* const verb =
      app.add_subcommand("report", "One offline HTML file about a run or a sweep, or comparing any of them");
  const auto arguments = std::make_shared<report_verb::Arguments>();
  verb->add_option("SOURCES", arguments->sources, "Run directories, checkpoints, directories of sweeps")->required();
  verb->add_option("-o,--out", arguments->out,
                   "The page to write; default: report.html, of one run or sweep in its directory, else here");
  verb->add_option("--csv", arguments->csv, "The table of results as CSV, too; - for stdout; default: none");
  verb->add_option("--tensorboard", arguments->tensorboard,
                   "A folder for TensorBoard, too: an event file of every run in a folder of its name; default: none");
  verb->add_flag("--json", arguments->json, "Print the results as one JSON object instead of writing a page");
  verb->footer(
      "Example: siamese report runs/demo runs/pre runs/siamese/step500 --out comparison.html --csv results.csv");
  verb->callback([arguments] { report_verb::run(*arguments); });
}

}  // namespace siamese::cli
