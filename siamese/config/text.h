// Text of the user's own: what counts as text, and how much of it an error quotes.
#pragma once

#include <string>
#include <string_view>

namespace siamese::config {

// UsageError unless `text` is UTF-8 without control characters other than tab and line breaks. yaml-cpp would take
// byte 4 for the end of the text and not look at what follows; a checkpoint could not store what is not UTF-8.
void check_text(std::string_view text, const std::string& source);

// The text itself, or its beginning and "..." when it is too long for a message.
std::string shown(std::string_view text);

}  // namespace siamese::config
