#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>

#include "siamese/cli/table.h"
#include "siamese/cli/verbs.h"
#include "siamese/residual/registry.h"

namespace siamese::cli {
namespace {

void print_all() {
  std::vector<std::vector<std::string>> rows = {{"scheme", "paper", "equation"}};
  for (const auto& scheme : residual::schemes())
    rows.push_back({scheme.doc.name, scheme.doc.paper, scheme.doc.equation});
  std::printf("%s", text_table(rows).c_str());
}

void print_one(const std::string& name) {
  const auto& scheme = residual::find_scheme(residual::parse_scheme_text(name));
  std::printf("%s: %s\n%s\n", scheme.doc.name.c_str(), scheme.doc.paper.c_str(), scheme.doc.equation.c_str());
  std::vector<std::vector<std::string>> rows = {{"option", "default", "meaning"}};
  for (const auto& option : scheme.options()) rows.push_back({option.path, option.fallback, option.help});
  if (rows.size() > 1) std::printf("\n%s", text_table(rows).c_str());
}

}  // namespace

void add_schemes(CLI::App& app) {
  auto* const verb = app.add_subcommand("schemes", "The residual schemes, or one with its options");
  const auto name = std::make_shared<std::string>();
  verb->add_option("NAME", *name, "A scheme");
  verb->footer("Example: siamese schemes siamese");
  verb->callback([name] { name->empty() ? print_all() : print_one(*name); });
}

}  // namespace siamese::cli
