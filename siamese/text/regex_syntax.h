// Oniguruma's syntax as PCRE2 reads it (UTF, UCP, MULTILINE). The two disagree about
//   \s \S      PCRE2 counts U+180E as a space          \w \W \b \B   PCRE2 counts all numbers, not marks
//   \h \v      hexadecimal digit, vertical tab           \uHHHH        \x{HHHH}
//   \p{Name}   long names; scripts mean Script, not Script_Extensions, and characters that one of them does not know
//   {,n}       {0,n}
// Refused, because it would need more than a change of spelling: nested classes, [[:posix:]], &&, {n,m}+, groups by
// name or number, conditions, inline options other than i, \K \R \X \G.
#pragma once

#include <string>
#include <string_view>

namespace siamese::text {

// DataError: "<where>: ...".
std::string translate_regex(std::string_view pattern, const std::string& where);

}  // namespace siamese::text
