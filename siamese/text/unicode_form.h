// The four Unicode normalization forms, over utf8proc's tables.
#pragma once

#include <string>
#include <string_view>

namespace siamese::text {

enum class Form { nfc, nfd, nfkc, nfkd };

// Valid UTF-8 in the form. Time grows with the text as n log n, whatever it holds.
std::string to_form(Form form, std::string_view text);

// True when `text` certainly is in the form already: the common case, told without writing anything.
bool surely_in_form(Form form, std::string_view text);

}  // namespace siamese::text
