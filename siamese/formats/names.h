// Patterns of tensor names: "blocks.*.mlp.fc1.+" is "blocks.3.mlp.fc1.weight" at number 3, role weight.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace siamese::formats {

struct NameParts {
  int64_t number = -1;    // for `*`
  std::string_view role;  // for `+`: weight or bias
};

// What the pattern's marks stand for in `name`; nullopt when it does not fit. A number has one spelling: no leading 0.
std::optional<NameParts> match_name(std::string_view pattern, std::string_view name);

std::string fill_name(std::string_view pattern, const NameParts& parts);

// For messages, "a, b, c". When that is long, names that differ in one number only become one, "h.{0,1,2}.ln_1.bias",
// in order of first appearance; what then goes past `longest` characters is counted: "a, b and 7 more".
std::string listed_names(const std::vector<std::string>& names, size_t longest = 1400);

}  // namespace siamese::formats
