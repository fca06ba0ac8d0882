// Strict reading and printing of any struct that lists its fields:
//
//   struct OptimConfig {
//     double lr = 1e-3;
//     template <class Self, class Visit>
//     static void fields(Self& self, Visit&& visit) {
//       visit("lr", self.lr, "peak learning rate");
//     }
//   };
//
// One list serves the reader (unknown key = error with the nearest match), the printer (so that print and read
// round-trip), and the key reference. Field types: bool, integers, double, std::string, named enums, vectors, structs.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "siamese/base/check.h"
#include "siamese/base/enum_text.h"
#include "siamese/base/join.h"
#include "siamese/base/nearest.h"
#include "siamese/config/text.h"
#include "siamese/config/use.h"
#include "siamese/config/value.h"

namespace siamese::config {

struct NoVisit {
  template <class T>
  void operator()(std::string_view, T&, const About&) const {}
};

template <class T>
concept HasFields = requires(T& value, NoVisit visit) {
  T::fields(value, visit);
};

// "demo.yaml:3: model.width": how an error names a value.
inline std::string named(const Value& value, const std::string& path) {
  return value.where.empty() ? path : value.where + ": " + path;
}

[[noreturn]] inline void wrong_type(const Value& value, const std::string& path, const std::string& expected) {
  throw UsageError(named(value, path) + ": expected " + expected + ", got " + value.kind_text());
}

inline void read(const Value& value, const std::string& path, bool& out) {
  if (value.text == "true" || value.text == "yes" || value.text == "on") {
    out = true;
  } else if (value.text == "false" || value.text == "no" || value.text == "off") {
    out = false;
  } else {
    wrong_type(value, path, "true or false");
  }
}

inline void read(const Value& value, const std::string& path, std::string& out) {
  if (value.kind != Value::Kind::scalar) wrong_type(value, path, "text");
  out = value.text;
}

inline void read(const Value& value, const std::string& path, double& out) {
  const char* const end = value.text.data() + value.text.size();
  const auto result = std::from_chars(value.text.data(), end, out);
  if (value.kind != Value::Kind::scalar || result.ec != std::errc{} || result.ptr != end || !std::isfinite(out)) {
    wrong_type(value, path, "a number");
  }
  if (out == 0) out = 0;  // -0 is 0, in texts too
}

template <std::integral T>
void read(const Value& value, const std::string& path, T& out) {
  const char* const end = value.text.data() + value.text.size();
  const auto result = std::from_chars(value.text.data(), end, out);
  if (value.kind != Value::Kind::scalar || result.ec != std::errc{} || result.ptr != end) {
    wrong_type(value, path, std::is_unsigned_v<T> ? "a whole number >= 0" : "a whole number");
  }
}

template <NamedEnum E>
void read(const Value& value, const std::string& path, E& out) {
  const auto parsed = enum_from_text<E>(value.text);
  if (value.kind != Value::Kind::scalar || !parsed) {
    const auto choices = enum_choices<E>();
    wrong_type(value, path, "one of " + join(choices) + did_you_mean(value.text, choices));
  }
  out = *parsed;
}

template <class T>
void read(const Value& value, const std::string& path, std::vector<T>& out) {
  out.clear();
  if (value.kind == Value::Kind::scalar) {  // one item may stand without brackets
    read(value, path, out.emplace_back());
    return;
  }
  if (value.kind != Value::Kind::list) wrong_type(value, path, "a list");
  for (size_t i = 0; i < value.items.size(); ++i) {
    read(value.items[i], path + "[" + std::to_string(i) + "]", out.emplace_back());
  }
}

// The full names of T's keys, those in sections with dots.
template <HasFields T>
void list_keys(const std::string& prefix, const T& value, std::vector<std::string>& paths) {
  T::fields(value, [&](std::string_view name, const auto& field, const About&) {
    const std::string path = prefix.empty() ? std::string(name) : prefix + "." + std::string(name);
    if constexpr (HasFields<std::remove_cvref_t<decltype(field)>>) {
      list_keys(path, field, paths);
    } else {
      paths.push_back(path);
    }
  });
}

template <HasFields T>
void read(const Value& value, const std::string& path, T& out, Written written = Written::behind_section) {
  if (value.kind == Value::Kind::null) return;  // an empty section keeps its defaults
  if (!value.is_map()) wrong_type(value, path, "a map of keys");
  std::vector<std::string> known;
  T::fields(out, [&](std::string_view name, auto& field, const About&) {
    known.emplace_back(name);
    if (const Value* given = value.find(name))
      read(*given, path.empty() ? known.back() : path + "." + known.back(), field);
  });
  for (const auto& [key, child] : value.entries) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      std::vector<std::string> all;
      list_keys("", out, all);
      refuse_unknown_key(value, path, key, {known, all}, written);
    }
  }
}

inline Value print(bool value) { return Value::scalar(value ? "true" : "false"); }
inline Value print(const std::string& value) { return Value::scalar(value); }
inline Value print(double value) {
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);  // shortest text that reads back equal
  return Value::scalar(std::string(buffer, result.ptr));
}
template <std::integral T>
Value print(T value) {
  return Value::scalar(std::to_string(value));
}
template <NamedEnum E>
Value print(E value) {
  return Value::scalar(std::string(enum_text(value)));
}
template <HasFields T>
Value print(const T& value);  // seen by the vector below, which may hold structs
template <class T>
Value print(const std::vector<T>& values) {
  Value list = Value::list({});
  for (const auto& value : values) list.items.push_back(print(value));
  return list;
}
template <HasFields T>
Value print(const T& value) {
  Value map = Value::map();
  T::fields(value, [&](std::string_view name, const auto& field, const About&) { map[name] = print(field); });
  return map;
}

// Every key of T: where it has an effect, its default, and what it means.
struct KeyDoc : KeyUse {
  std::string fallback;  // the default, as printed
  std::string help;
};

template <class T>
void describe_into(const std::string& prefix, const T& value, const std::vector<Use>& outer,
                   std::vector<KeyDoc>& docs) {
  T::fields(value, [&](std::string_view name, const auto& field, const About& about) {
    const std::string path = prefix.empty() ? std::string(name) : prefix + "." + std::string(name);
    std::vector<Use> uses = outer;
    uses.insert(uses.end(), about.uses.begin(), about.uses.end());
    using Field = std::remove_cvref_t<decltype(field)>;
    if constexpr (HasFields<Field>) {
      describe_into(path, field, uses, docs);
    } else {
      std::string text;
      for (const Use& use : uses) text += use.prefix();
      text += about.help;
      if constexpr (NamedEnum<Field>) text += (about.help.empty() ? "" : ": ") + join(enum_choices<Field>(), " | ");
      docs.push_back({{path, std::move(uses)}, flatten(print(field)).front().second, std::move(text)});
    }
  });
}

template <HasFields T>
std::vector<KeyDoc> describe(const T& defaults = {}) {
  std::vector<KeyDoc> docs;
  describe_into("", defaults, {}, docs);
  return docs;
}

template <HasFields T>
std::vector<KeyUse> key_uses() {
  const auto docs = describe<T>();
  return {docs.begin(), docs.end()};
}

// Reads, resolves and refuses what a user gave without effect; what a later choice left over is as if never given.
// `resolve` derives and checks; `facts` gives the texts of a resolved value by which uses are judged.
template <HasFields T, class Resolve, class Facts>
T read_used(const Value& given, Resolve resolve, Facts facts) {
  T as_read;
  read(given, "", as_read);
  T value = as_read;
  resolve(value);
  if (!given_by_user(given)) return value;
  const std::vector<KeyUse> keys = key_uses<T>();
  const Texts texts = facts(value);
  const auto unused = unused_keys(keys, given, texts);
  if (unused.empty()) return value;
  Value rest = given;
  for (const KeyUse* const key : unused) erase_path(rest, key->path);
  T without;
  read(rest, "", without);
  resolve(without);
  refuse_unused(unused, given, texts, flatten(print(as_read)), flatten(print(without)));
  return without;
}

}  // namespace siamese::config
