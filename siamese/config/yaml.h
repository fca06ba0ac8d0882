// YAML text <-> Value. Aliases, duplicate keys, several documents in one file and what is not UTF-8 text are refused.
#pragma once

#include <cstddef>
#include <string>

#include "siamese/config/value.h"

namespace siamese::config {

inline constexpr size_t kMaxYamlBytes = 1 << 20;  // a wrong file should be refused, not parsed for minutes

// `source` names the text in errors ("demo.yaml", "command line").
Value parse_yaml(const std::string& text, const std::string& source);

// Block style, two spaces, keys in order, lists of scalars in one line.
std::string to_yaml(const Value& value);

// One line: a scalar as it is (quoted when YAML needs it), a list as [a, b].
std::string inline_yaml(const Value& value);

}  // namespace siamese::config
