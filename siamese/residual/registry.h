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
};

struct Scheme {
  SchemeDoc doc;
  // Reads the arguments strictly and keeps those that differ from the default, in the scheme's order.
  std::function<config::Value(const config::Value& arguments)> canonical;
  std::function<std::unique_ptr<Topology>(const config::Value& arguments, const nn::Scope& scope, const Build& build)>
      make;
  std::function<std::vector<config::KeyDoc>()> options;
};

// Options: a struct with a `fields` list. Factory: (const Options&, const nn::Scope&, const Build&) ->
// unique_ptr<Topology>.
template <class Options, class Factory>
Scheme define_scheme(SchemeDoc doc, Factory factory) {
  const std::string name = doc.name;
  const auto parse = [name](const config::Value& arguments) {
    Options options;
    config::read(arguments, name, options);
    return options;
  };
  return {std::move(doc),
          [parse](const config::Value& arguments) {
            const config::Value given = config::print(parse(arguments));
            const config::Value defaults = config::print(Options{});
            config::Value kept = config::Value::map();
            for (const auto& [key, value] : given.entries) {
              if (value.text != defaults.find(key)->text) kept[key] = value;
            }
            return kept;
          },
          [parse, factory](const config::Value& arguments, const nn::Scope& scope, const Build& build) {
            return factory(parse(arguments), scope, build);
          },
          [] { return config::describe<Options>(); }};
}

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

std::unique_ptr<Topology> make_topology(const std::string& text, const nn::Scope& scope, const Build& build);

}  // namespace siamese::residual
