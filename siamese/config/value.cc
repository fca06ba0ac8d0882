#include "siamese/config/value.h"

#include <algorithm>

#include "siamese/base/check.h"
#include "siamese/config/text.h"
#include "siamese/config/yaml.h"

namespace siamese::config {

Value::Value() = default;

Value Value::scalar(std::string text, std::string where) {
  Value value;
  value.kind = Kind::scalar;
  value.text = std::move(text);
  value.where = std::move(where);
  return value;
}

Value Value::list(std::vector<Value> items, std::string where) {
  Value value;
  value.kind = Kind::list;
  value.items = std::move(items);
  value.where = std::move(where);
  return value;
}

Value Value::map(std::string where) {
  Value value;
  value.kind = Kind::map;
  value.where = std::move(where);
  return value;
}

const Value* Value::find(std::string_view key) const {
  for (const auto& [name, value] : entries) {
    if (name == key) return &value;
  }
  return nullptr;
}

Value& Value::operator[](std::string_view key) {
  kind = Kind::map;
  for (auto& [name, value] : entries) {
    if (name == key) return value;
  }
  return entries.emplace_back(std::string(key), Value{}).second;
}

bool Value::erase(std::string_view key) {
  return std::erase_if(entries, [key](const auto& entry) { return entry.first == key; }) > 0;
}

std::vector<std::string> Value::keys() const {
  std::vector<std::string> names;
  for (const auto& entry : entries) names.push_back(entry.first);
  return names;
}

std::string Value::kind_text() const {
  switch (kind) {
    case Kind::map:
      return "a map";
    case Kind::list:
      return "a list";
    case Kind::scalar:
      return "'" + shown(text) + "'";
    case Kind::null:
      break;
  }
  return "nothing";
}

void merge(Value& base, const Value& over) {
  if (base.is_map() && over.kind == Value::Kind::null) return;
  if (!base.is_map() || !over.is_map()) {
    base = over;
    return;
  }
  for (const auto& [key, value] : over.entries) merge(base[key], value);
}

void set_path(Value& root, std::string_view path, Value value) {
  constexpr auto kMaxParts = 16;  // a tree is walked by recursion, and parse_yaml refuses a deep one
  constexpr size_t kMaxBytes = 256;
  if (path.size() > kMaxBytes || std::count(path.begin(), path.end(), '.') >= kMaxParts) {
    throw UsageError("override '" + shown(path) + "': expected a key of at most " + std::to_string(kMaxParts) +
                     " parts and " + std::to_string(kMaxBytes) + " bytes");
  }
  Value* node = &root;
  while (true) {
    const size_t dot = path.find('.');
    if (path.empty() || dot == 0) throw UsageError("override with an empty key part: expected a.b=value");
    node = &(*node)[path.substr(0, dot)];
    if (dot == std::string_view::npos) break;
    if (!node->is_map()) *node = Value::map(value.where);
    path.remove_prefix(dot + 1);
  }
  *node = std::move(value);
}

const Value* find_path(const Value& root, std::string_view path) {
  const Value* node = &root;
  while (node != nullptr && !path.empty()) {
    const size_t dot = std::min(path.find('.'), path.size());
    node = node->find(path.substr(0, dot));
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return node;
}

void erase_path(Value& root, std::string_view path) {
  const size_t dot = path.find('.');
  if (dot == std::string_view::npos) {
    root.erase(path);
  } else if (root.find(path.substr(0, dot)) != nullptr) {
    erase_path(root[path.substr(0, dot)], path.substr(dot + 1));
  }
}

Value in_layer(Value value, int layer) {
  value.layer = layer;
  for (Value& item : value.items) item = in_layer(std::move(item), layer);
  for (auto& [key, child] : value.entries) child = in_layer(std::move(child), layer);
  return value;
}

void apply_override(Value& root, const std::string& assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw UsageError("override '" + shown(assignment) + "': expected key=value, for example optim.lr=2e-3");
  }
  check_text(assignment, "command line");
  Value value = parse_yaml(assignment.substr(equals + 1), "command line");
  set_path(root, assignment.substr(0, equals), in_layer(std::move(value), kCommandLineLayer));
}

namespace {

void flatten_into(const std::string& prefix, const Value& value, Texts& leaves) {
  if (!value.is_map()) {
    leaves.emplace_back(prefix, inline_yaml(value));
    return;
  }
  for (const auto& [key, child] : value.entries) flatten_into(prefix.empty() ? key : prefix + "." + key, child, leaves);
}

}  // namespace

Texts flatten(const Value& root) {
  Texts leaves;
  flatten_into("", root, leaves);
  return leaves;
}

const std::string* find_text(const Texts& texts, std::string_view path) {
  const auto found = std::find_if(texts.begin(), texts.end(), [&](const auto& entry) { return entry.first == path; });
  return found != texts.end() ? &found->second : nullptr;
}

}  // namespace siamese::config
