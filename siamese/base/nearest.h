// The likely meaning of a misspelt name: shared by config keys, enum values, schemes and presets.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace siamese {

// The candidate with the smallest edit distance, or "" when none is close enough to be a slip. Beyond a slip of two
// letters a candidate that the text begins with comes first: "prenorm" means "pre" and not "deepnorm".
std::string nearest_match(std::string_view text, const std::vector<std::string>& candidates);

// " (did you mean 'x'?)", or "" when nothing is near.
std::string did_you_mean(std::string_view text, const std::vector<std::string>& candidates);

}  // namespace siamese
