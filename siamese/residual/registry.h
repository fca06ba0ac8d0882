// The schemes by name: one explicit list (registry.cc), to which a program may add its own at start (examples/).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "siamese/config/fields.h"
#include "siamese/residual/scheme_text.h"
#include "siamese/residual/topology.h"

namespace siamese::residual {

// What a scheme tells about itself.
struct SchemeDoc {
  std::string name;
  std::string equation;  // one line
  std::string paper;
  std::string full = "";  // all lines; empty = the one
};

struct Scheme {
  SchemeDoc doc;
  // Reads the arguments strictly and keeps those that differ from the default, in the scheme's order.
  std::function<config::Value(const config::Value& arguments)> canonical;
  std::function<std::unique_ptr<Topology>(const config::Value& arguments, const nn::Scope& scope, const Build& build)>
      make;
  std::function<std::vector<config::KeyDoc>()> options;
};

// Reads a scheme's arguments strictly. Options may have `defaults()`, for a default that depends on another option, and
// `check()`, which throws for values that cannot be.
template <class Options>
Options parse_options(const std::string& name, const config::Value& arguments) {
  Options options;
  config::read(arguments, name, options, config::Written::alone);
  if constexpr (requires { options.defaults(); }) {
    options = options.defaults();
    config::read(arguments, name, options, config::Written::alone);
  }
  if constexpr (requires { options.check(); }) options.check();
  return options;
}

// The arguments that differ from their default, in the order of the list.
template <class Options>
config::Value canonical_arguments(const Options& options) {
  Options fallback;
  if constexpr (requires { options.defaults(); }) fallback = options.defaults();
  const config::Value defaults = config::print(fallback);
  config::Value kept = config::Value::map();
  for (const auto& [key, value] : config::print(options).entries) {
    if (value.text != defaults.find(key)->text) kept[key] = value;
  }
  return kept;
}

// Options: a struct with a `fields` list. Factory: (const Options&, const nn::Scope&, const Build&) ->
// unique_ptr<Topology>.
template <class Options, class Factory>
Scheme define_scheme(SchemeDoc doc, Factory factory) {
  const std::string name = doc.name;
  return {
      std::move(doc),
      [name](const config::Value& arguments) { return canonical_arguments(parse_options<Options>(name, arguments)); },
      [name, factory](const config::Value& arguments, const nn::Scope& scope, const Build& build) {
        return factory(parse_options<Options>(name, arguments), scope, build);
      },
      [] { return config::describe<Options>(); }};
}

// For an option that multiplies something: UsageError unless it is a number that float32 can live with.
void check_factor(const char* key, double value);

struct NoOptions {
  template <class Self, class Visit>
  static void fields(Self&, Visit&&) {}
};

const std::vector<Scheme>& schemes();

// Adds a scheme of the program's own; UsageError when the name is taken. Call before the first model is built.
void register_scheme(Scheme scheme);

// The scheme of a text; UsageError with the nearest name when unknown.
const Scheme& find_scheme(const SchemeText& text);

// "siamese( x = hybrid,input_norm=true)" -> "siamese(x=hybrid)".
std::string canonical_scheme(const std::string& text);

// `scope` is the model's own: the scheme's parameters outside its junctions lie below `open` and `close` there.
std::unique_ptr<Topology> make_topology(const std::string& text, const nn::Scope& scope, const Build& build);

}  // namespace siamese::residual
