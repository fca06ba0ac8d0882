// A configuration as a tree of text: what YAML files, overrides and printed structs have in common.
// Every node remembers where it was written, so an error can say so.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace siamese::config {

// How late a value was given: a later one wins, and a key that it leaves without effect is dropped (config/use.h). Of a
// file that starts from presets, each preset lies one layer below what names it.
inline constexpr int kStoredLayer = -1;  // of a run: whatever it says, it was accepted when it was written
inline constexpr int kFileLayer = 8;
inline constexpr int kCommandLineLayer = 16;

struct Value {
  enum class Kind { null, scalar, list, map };

  Kind kind = Kind::null;
  std::string text;                                    // scalar
  std::vector<Value> items;                            // list
  std::vector<std::pair<std::string, Value>> entries;  // map, in written order
  std::string where;                                   // "demo.yaml:12", "command line", or ""
  int layer = kFileLayer;

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

// The value at `a.b.c`, or null.
const Value* find_path(const Value& root, std::string_view path);
void erase_path(Value& root, std::string_view path);

// The same with every value in `layer`.
Value in_layer(Value value, int layer);

// Applies "a.b=value" in the layer of the command line; the value is read as YAML. Throws UsageError when there is no
// '='.
void apply_override(Value& root, const std::string& assignment);

using Texts = std::vector<std::pair<std::string, std::string>>;  // ("optim.lr", "0.002")

// All leaves with their paths, lists printed in flow style.
Texts flatten(const Value& root);

const std::string* find_text(const Texts& texts, std::string_view path);  // or null

}  // namespace siamese::config
