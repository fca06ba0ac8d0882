#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>

#include "siamese/cli/table.h"
#include "siamese/cli/verbs.h"
#include "siamese/residual/facts.h"

namespace siamese::cli {
namespace {

void print_all() {
  std::vector<std::vector<std::string>> rows = {
      {"scheme", "streams", "norms", "extra parameters", "equation", "paper"}};
  for (const auto& scheme : residual::schemes()) {
    const auto facts = residual::scheme_facts(scheme.doc.name);
    rows.push_back({scheme.doc.name, residual::streams_text(facts),
                    std::to_string(facts.norms_per_block) + " + " + std::to_string(facts.norms_at_ends),
                    residual::extra_parameters_text(facts), scheme.doc.equation, scheme.doc.paper});
  }
  std::printf("%s\n", text_table(rows).c_str());
  std::printf(
      "norms: of width d, per block + at the ends. extra parameters: per block beyond Pre-Norm's 2 d, norms inside\n"
      "attention not counted. All at default options; `siamese schemes NAME` has the full equation and the options.\n");
}

void print_one(const std::string& text) {
  const auto& scheme = residual::find_scheme(residual::parse_scheme_text(text));
  const std::string canonical = residual::canonical_scheme(text);
  const auto facts = residual::scheme_facts(canonical);
  std::printf("%s: %s\n\n%s\n\n", scheme.doc.name.c_str(), scheme.doc.paper.c_str(),
              scheme.doc.full.empty() ? scheme.doc.equation.c_str() : scheme.doc.full.c_str());
  std::printf("%s: streams %s, %lld norms of width d per block and %lld at the ends, extra parameters per block %s\n",
              canonical.c_str(), residual::streams_text(facts).c_str(), static_cast<long long>(facts.norms_per_block),
              static_cast<long long>(facts.norms_at_ends), residual::extra_parameters_text(facts).c_str());
  std::vector<std::vector<std::string>> rows = {{"option", "default", "meaning"}};
  for (const auto& option : scheme.options()) rows.push_back({option.path, option.fallback, option.help});
  if (rows.size() > 1) std::printf("\n%s", text_table(rows).c_str());
}

}  // namespace

void add_schemes(CLI::App& app) {
  auto* const verb = app.add_subcommand("schemes", "The residual schemes, or one with its options");
  const auto name = std::make_shared<std::string>();
  verb->add_option("NAME", *name, "A scheme, with options if you like: siamese(x=hybrid)");
  verb->footer("Example: siamese schemes siamese");
  verb->callback([name] { name->empty() ? print_all() : print_one(*name); });
}

}  // namespace siamese::cli
