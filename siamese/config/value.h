// A configuration as a tree of text: what YAML files, overrides and printed structs have in common.
// Every node remembers where it was written, so an error can say so.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace siamese::config {

struct Value {
  enum class Kind { null, scalar, list, map };

  Kind kind = Kind::null;
  std::string text;                                    // scalar
  std::vector<Value> items;                            // list
  std::vector<std::pair<std::string, Value>> entries;  // map, in written order
  std::string where;                                   // "demo.yaml:12", "command line", or ""

  Value();  // defined apart: an inline one would need the whole of `entries` before Value is (Clang)
  static Value scalar(std::string text, std::string where = "");
  static Value list(std::vector<Value> items, std::string where = "");
  static Value map(std::string where = "");

  bool is_map() const { return kind == Kind::map; }
  const Value* find(std::string_view key) const;
  Value& operator[](std::string_view key);  // makes the entry (and the map) when missing
  bool erase(std::string_view key);
  std::vector<std::string> keys() const;
  std::string kind_text() const;  // "a map", "a list", "'x'": for messages
};

// `over` wins key by key; maps are merged, everything else is replaced. An empty section leaves the map it meets.
void merge(Value& base, const Value& over);

// Sets `a.b.c` to `value`, making maps on the way.
void set_path(Value& root, std::string_view path, Value value);

// Applies "a.b=value"; the value is read as YAML. Throws UsageError when there is no '='.
void apply_override(Value& root, const std::string& assignment);

// All leaves as ("a.b.c", "text") pairs, lists printed in flow style.
std::vector<std::pair<std::string, std::string>> flatten(const Value& root);

}  // namespace siamese::config
