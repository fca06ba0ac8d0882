// Character classes of a regular expression by our own table (characters.h): PCRE2's follows an older version of
// Unicode.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace siamese::text {

// What stands inside [...]: `pcre2`, a class of PCRE2's own, and the characters of the kinds `mask` that it does not
// have.
std::string completed_class(std::string_view pcre2, uint16_t mask);

// The kinds that a category ("L", "Lu", "Nd" ...) means; 0 for one that the table does not tell.
uint16_t kinds_of_category(std::string_view category);

}  // namespace siamese::text
