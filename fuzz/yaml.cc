#include "siamese/config/yaml.h"

#include "fuzz/contract.h"
#include "fuzz/memory_file.h"
#include "tests/config/sample_config.h"

#include "siamese/config/load.h"

namespace siamese::fuzz {
namespace {

using config::Value;

// Equal but for where it was written.
bool same(const Value& a, const Value& b) {
  if (a.kind != b.kind || a.text != b.text) return false;
  if (a.items.size() != b.items.size() || a.entries.size() != b.entries.size()) return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    if (!same(a.items[i], b.items[i])) return false;
  }
  for (size_t i = 0; i < a.entries.size(); ++i) {
    if (a.entries[i].first != b.entries[i].first || !same(a.entries[i].second, b.entries[i].second)) return false;
  }
  return true;
}

void check_printing(const Value& value) {
  const auto parsed = [](const std::string& text) {
    return reads([&] { return config::parse_yaml(text, "printed"); });
  };
  require(same(parsed(config::to_yaml(value)), value), "a block is printed as it was read");
  const std::string line = config::inline_yaml(value);
  require(line.find('\n') == std::string::npos, "a flow is one line");
  require(same(parsed(line), value), "a flow is printed as it was read");
  config::flatten(value);
}

// A struct of every field type, read strictly.
void check_reading(const Value& value) {
  sample::Sample fields;
  config::read(value, "", fields);
  const auto again = reads([&] {
    sample::Sample copy;
    config::read(config::parse_yaml(config::to_yaml(config::print(fields)), "printed"), "", copy);
    return copy;
  });
  require(fields == again, "fields are printed as they were read");
}

}  // namespace

void check_yaml(Bytes bytes) {
  const std::string text(text_of(bytes));
  reads_or_refuses(
      [&] {
        const Value value = config::parse_yaml(text, "file");
        check_printing(value);
        Value merged = value;
        config::merge(merged, value);
        require(same(merged, value), "merged with itself it is the same");
        check_reading(value);
      },
      false);
  const MemoryFile stored(bytes);
  reads_or_refuses([&] { config::load(stored.path().string(), {}, {}); }, false);
}

void check_override(Bytes bytes) {
  reads_or_refuses(
      [&] {
        Value root = config::parse_yaml("a: 1\nb: {c: [2, 3], d:}\n", "file");
        config::apply_override(root, std::string(text_of(bytes)));
        check_printing(root);
        check_reading(root);
      },
      false);
}

}  // namespace siamese::fuzz
