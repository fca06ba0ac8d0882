#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/base/utf8.h"
#include "siamese/cli/paths.h"
#include "siamese/cli/progress_line.h"
#include "siamese/cli/verbs.h"
#include "siamese/cli/version.h"
#include "siamese/data/mixture.h"
#include "siamese/eval/analysis.h"
#include "siamese/io/aside.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/result_file.h"
#include "siamese/io/run_dir.h"
#include "siamese/models/lm.h"
#include "siamese/report/analysis_page.h"
#include "siamese/report/page.h"
#include "siamese/runs/same_run.h"
#include "siamese/train/checkpoint.h"
#include "siamese/train/device.h"
#include "siamese/train/provenance.h"
#include "siamese/train/run_tokenizer.h"

namespace siamese::cli {
namespace analyze_verb {

namespace fs = std::filesystem;

struct Arguments {
  std::string run;
  std::vector<std::string> overrides;
  std::vector<std::string> data;
  std::vector<std::string> compare;
  std::string out;
  eval::AnalysisOptions options;
  bool json = false;
};

// Of a run's checkpoint analysis/step{N} of the run; else beside the folder of the weights, which holds nothing else.
fs::path default_folder(const std::string& run) {
  fs::path folder = io::resolve_checkpoint(run).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  if (folder == "." || folder.filename() == "..") folder = fs::canonical(folder);  // its name is asked for
  const fs::path parent = folder.parent_path();
  if (is_file(parent / io::kRunFile)) return parent / io::kAnalysisFolder / folder.filename();
  return parent / (folder.filename().string() + ".analysis");
}

// Of an analysis that was killed: files of these names, but analysis.json, which is the last, and what is aside.
bool is_part_of_one(const fs::path& folder) {
  const auto entries = folder_entries(folder);
  return std::all_of(entries.begin(), entries.end(), [](const fs::path& entry) {
    const std::string name = entry.filename().string();
    if (name == runs::kAnalysisPage) return is_file(entry) && io::holds_text(std::string(report::kPageMark))(entry);
    return name == runs::kAnalysisTensors || io::is_aside_name(name);
  });
}

// Somebody's folder is not ours to write into.
void check_free(const fs::path& folder) {
  const fs::path earlier = folder / runs::kAnalysisFile;
  if (!is_taken(folder) || (is_file(earlier) && io::holds_text("\"kind\": \"analysis\"", 64)(earlier))) return;
  if (is_folder(folder) && is_part_of_one(folder)) return;
  throw UsageError(folder.string() + ": exists already and is no analysis; choose another with --out");
}

runs::AnalysisMaker maker(const train::EngineConfig& engine, int64_t step) {
  runs::Stretch now = train::begin_stretch(engine, step);
  return {.build = std::move(now.build),
          .simd = std::move(now.simd),
          .precision = std::move(now.precision),
          .device = std::move(now.device),
          .cpu = std::move(now.cpu),
          .threads = now.threads,
          .command = std::move(now.command)};
}

report::DrawnAnalysis analyze_run(const std::string& run, const Arguments& arguments, const fs::path& folder) {
  check_free(folder);
  train::RunConfig config = load_stored_config(run, with_held_out(arguments.overrides, arguments.data),
                                               {"data.", "engine."}, "keys of data and engine");
  train::apply_engine(config.engine);
  warn_of_slow_precision(config.engine);
  const runs::SameRun same(io::resolve_checkpoint(run));
  const train::LoadedModel loaded =
      train::load_model(run, train::Weights::trained, at::kFloat, 0, train::device_of(config.engine));
  const bool speaks = dynamic_cast<const models::LanguageModel*>(loaded.model.get()) != nullptr;
  const std::unique_ptr<eval::Words> words = speaks ? train::words_of(loaded) : nullptr;
  const auto held_out = data::open_held_out(config.data, train::sample_shape(loaded.config.model));
  ProgressLine line;
  const eval::AnalysisProgress progress = [&](const std::string& what, int64_t done, int64_t of) {
    if (line.due()) line.show(fmt::format("{}: {} of {} ({:.0f} s)", what, done, of, line.seconds()));
  };
  eval::Analysis analysis =
      eval::analyze(*loaded.model, loaded.config.model, *held_out.front().batches, arguments.options, progress);
  line.clear();
  if (words) eval::name_tokens(analysis.record, *words);
  analysis.record.run = loaded.checkpoint.string();
  analysis.record.step = loaded.step;
  analysis.record.made_by = maker(config.engine, loaded.step);
  same.check();
  io::make_directory(folder);
  io::remove_leftovers(folder);
  models::save_tensors(folder / runs::kAnalysisTensors, analysis.tensors, {});
  report::DrawnAnalysis drawn{std::move(analysis.record), runs::read_analysis_arrays(folder)};
  report::write_analysis_page(folder / runs::kAnalysisPage, {drawn});
  io::write_file_atomic(folder / runs::kAnalysisFile, runs::to_json(drawn.record));  // the last: all is there
  try {
    same.check();
  } catch (const DataError&) {
    for (const auto name : {runs::kAnalysisFile, runs::kAnalysisTensors, runs::kAnalysisPage}) {
      std::error_code ignored;
      fs::remove(folder / name, ignored);
    }
    same.check(folder);
  }
  return drawn;
}

report::DrawnAnalysis read_drawn(const fs::path& folder) {
  if (!is_there(folder / runs::kAnalysisTensors)) {
    std::fprintf(stderr, "siamese: %s: is missing; the page does without what it held\n",
                 printable((folder / runs::kAnalysisTensors).string()).c_str());
  }
  return {runs::read_analysis_file(folder), runs::read_analysis_arrays(folder)};
}

// A folder of an analysis as it is; of a run, the analysis that it has, or a new one.
report::DrawnAnalysis analysis_of(const std::string& source, const Arguments& arguments) {
  if (is_file(fs::path(source) / runs::kAnalysisFile)) return read_drawn(source);
  const fs::path folder = default_folder(source);
  if (is_file(folder / runs::kAnalysisFile)) {
    std::fprintf(stderr, "siamese: %s: as analysed before, in %s\n", printable(source).c_str(),
                 printable(folder.string()).c_str());
    return read_drawn(folder);
  }
  return analyze_run(source, arguments, folder);
}

void compare(Arguments arguments) {
  if (arguments.run.find('=') != std::string::npos && !is_taken(arguments.run)) {
    arguments.overrides.insert(arguments.overrides.begin(), std::exchange(arguments.run, ""));  // no RUN goes before it
  }
  if (!arguments.run.empty()) {
    throw UsageError("--compare: expected it without another RUN, got " + arguments.run);
  }
  std::vector<report::DrawnAnalysis> analyses;
  for (const std::string& source : arguments.compare) {
    analyses.push_back(analysis_of(source, arguments));
    report::check_one_family(analyses);
  }
  if (const std::string said = report::unlike(analyses); !said.empty()) {
    std::fprintf(stderr, "siamese: %s\n", said.c_str());
  }
  const fs::path folder = arguments.out.empty() ? fs::path(".") : fs::path(arguments.out);
  io::make_directory(folder);
  const fs::path page = arguments.out.empty() ? fs::path(runs::kAnalysisPage) : folder / runs::kAnalysisPage;
  report::write_analysis_page(page, analyses);
  for (const report::DrawnAnalysis& analysis : analyses) {
    std::printf("%s", report::analysis_summary(analysis.record).c_str());
  }
  std::printf("%s\n", printable(page.string()).c_str());
}

void analyze(const Arguments& arguments) {
  if (!arguments.compare.empty()) return compare(arguments);
  if (arguments.run.empty()) throw UsageError("RUN: expected a run directory or a checkpoint, or --compare A B");
  const fs::path folder = arguments.out.empty() ? default_folder(arguments.run) : fs::path(arguments.out);
  const runs::AnalysisRecord record = analyze_run(arguments.run, arguments, folder).record;
  if (arguments.json) {
    std::printf("%s", runs::to_json(record).c_str());
    return;
  }
  std::printf("%s%s\n", report::analysis_summary(record).c_str(),
              printable((folder / runs::kAnalysisPage).string()).c_str());
}

}  // namespace analyze_verb

void add_analyze(CLI::App& app) {
  auto* const verb = app.add_subcommand(
      "analyze", "Look inside a model by depth: streams, lenses, gradients, the loss with parts left out");
  const auto arguments = std::make_shared<analyze_verb::Arguments>();
  constexpr int64_t kMost = int64_t{1} << 40;
  verb->add_option("RUN", arguments->run, "A run directory (its latest) or a checkpoint");
  verb->add_option("OVERRIDES", arguments->overrides, "key=value for the keys of data and engine");
  verb->add_option("--data", arguments->data, "Files of held-out text or tokens, instead of the run's (data.val)");
  verb->add_option(
      "-o,--out", arguments->out,
      "Folder for analysis.json, .safetensors and .html; default: analysis/step{N} in RUN, or RUN.analysis");
  verb->add_option("--samples", arguments->options.samples, "Held-out samples looked at, evenly spread over the set")
      ->check(CLI::Range(int64_t{1}, kMost));
  verb->add_option("--lens-tokens", arguments->options.lens_tokens, "Tokens of text that lenses read, in all")
      ->check(CLI::Range(int64_t{1}, kMost));
  verb->add_option("--changed-samples", arguments->options.changed_samples,
                   "Samples for gradients and for passes with parts left out: about a pass a sublayer and block each")
      ->check(CLI::Range(int64_t{1}, kMost));
  verb->add_flag(
      "--all-ranges", arguments->options.all_ranges,
      "Leave out every range of blocks, about L^2 / 2 passes of L blocks, not only of 1, 2, 4, 8 ... blocks");
  verb->add_flag("--all-sites", arguments->options.all_sites,
                 "Zero and hold streams from every site on, not only from the beginning of each block");
  verb->add_option("--compare", arguments->compare, "Two analyses, or runs, side by side on one page")
      ->expected(2)
      ->allow_extra_args(false)  // what follows is an override
      ->type_name("A B");
  verb->add_flag("--json", arguments->json, "Print analysis.json");
  verb->footer(
      "Example: siamese analyze runs/x\n"
      "         siamese analyze --compare runs/pre runs/siamese --out comparison");
  verb->callback([arguments] { analyze_verb::analyze(*arguments); });
}

}  // namespace siamese::cli
