#include "siamese/models/rope_scaling.h"

#include <cmath>
#include <vector>

#include "siamese/base/check.h"
#include "siamese/config/fields.h"
#include "siamese/io/message.h"
#include "siamese/residual/scheme_text.h"

namespace siamese::models {
namespace {

using nn::RopeScaling;
using nn::RopeScalingKind;

// The arguments of each kind, all after the two that both have.
template <class Scaling, class Visit>
void visit_arguments(Scaling& scaling, Visit&& visit) {
  visit("factor", scaling.factor);
  visit("context", scaling.context);
  if (scaling.kind == RopeScalingKind::llama3) {
    visit("low", scaling.low);
    visit("high", scaling.high);
  } else {
    visit("beta_fast", scaling.beta_fast);
    visit("beta_slow", scaling.beta_slow);
    visit("attention_factor", scaling.attention_factor);
    visit("truncate", scaling.truncate);
  }
}

[[noreturn]] void wrong(const std::string& expected, const std::string& got) {
  throw UsageError("model.rope_scaling: expected " + expected + ", got " + got);
}

void check(const RopeScaling& scaling, const std::string& text) {
  const auto require = [&](bool ok, const std::string& expected) {
    if (!ok) wrong(expected, io::in_quotes(text));
  };
  require(scaling.factor >= 1 && scaling.factor <= 1e6, "a factor from 1 to 1e6");
  require(scaling.context >= 1 && scaling.context <= int64_t{1} << 24, "a context from 1 to 16777216");
  require(scaling.low > 0 && scaling.low < scaling.high && std::isfinite(scaling.high), "0 < low < high");
  require(scaling.beta_slow > 0 && scaling.beta_slow < scaling.beta_fast && std::isfinite(scaling.beta_fast),
          "0 < beta_slow < beta_fast");
  require(scaling.attention_factor >= 0 && scaling.attention_factor <= 1e6, "an attention_factor from 0 to 1e6");
}

}  // namespace

RopeScaling rope_scaling_of(const std::string& text) {
  RopeScaling scaling;
  residual::SchemeText parsed;
  try {
    parsed = residual::parse_scheme_text(text);
  } catch (const UsageError&) {
    wrong("none, llama3(factor=8, context=8192) or yarn(factor=8, context=8192)", io::in_quotes(text));
  }
  const auto kind = enum_from_text<RopeScalingKind>(parsed.name);
  if (!kind) wrong("none, llama3(...) or yarn(...)", io::in_quotes(text));
  scaling.kind = *kind;
  for (const auto& [key, value] : parsed.arguments.entries) {
    bool known = false;
    if (scaling.kind != RopeScalingKind::none) {
      visit_arguments(scaling, [&](std::string_view name, auto& field) {
        if (name != key) return;
        config::read(value, "model.rope_scaling: " + key, field);
        known = true;
      });
    }
    if (!known) wrong("arguments of " + parsed.name, io::in_quotes(key) + " in " + io::in_quotes(text));
  }
  check(scaling, text);
  return scaling;
}

std::string rope_scaling_text(const RopeScaling& scaling) {
  residual::SchemeText text{std::string(enum_text(scaling.kind)), config::Value::map()};
  if (scaling.kind == RopeScalingKind::none) return text.name;
  RopeScaling usual;
  usual.kind = scaling.kind;
  std::vector<std::string> defaults;
  visit_arguments(usual, [&](std::string_view, const auto& field) { defaults.push_back(config::print(field).text); });
  size_t at = 0;
  visit_arguments(scaling, [&](std::string_view name, const auto& field) {
    const config::Value value = config::print(field);
    const bool always = name == "factor" || name == "context";  // what a reader looks for
    if (always || value.text != defaults[at]) text.arguments[name] = value;
    ++at;
  });
  return residual::print_scheme_text(text);
}

}  // namespace siamese::models
