// YAML text <-> Value. Aliases, duplicate keys and several documents in one file are refused.
#pragma once

#include <string>

#include "siamese/config/value.h"

namespace siamese::config {

// `source` names the text in errors ("demo.yaml", "command line").
Value parse_yaml(const std::string& text, const std::string& source);

// Block style, two spaces, keys in order, lists of scalars in one line.
std::string to_yaml(const Value& value);

// One line: a scalar as it is (quoted when YAML needs it), a list as [a, b].
std::string inline_yaml(const Value& value);

}  // namespace siamese::config
