// Text of the user's own: what counts as text, and how much of it an error quotes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace siamese::config {

struct Value;

// UsageError unless `text` is UTF-8 without control characters other than tab and line breaks. yaml-cpp would take
// byte 4 for the end of the text and not look at what follows; a checkpoint could not store what is not UTF-8.
void check_text(std::string_view text, const std::string& source);

// The text itself, or its beginning and "..." when it is too long for a message.
std::string shown(std::string_view text);

// What an unknown key of `section` may have meant, " (did you mean ...?)" or "": one of `known`, which stand beside it,
// or of the sections' keys, `inner`, by full name ("optim.lr"), of which it is the last word or the whole. What is
// proposed begins with `section`, so that it can be written in the place of what was written.
std::string key_hint(const std::string& section, std::string_view key, const std::vector<std::string>& known,
                     const std::vector<std::string>& inner);

// Of a key beside others in `map`: why it may be no key at all, but what follows a comma in a scheme without quotes,
// {model.residual: siamese(x=hybrid, input_norm=false)}; "" otherwise.
std::string comma_hint(std::string_view key, const Value& map);

}  // namespace siamese::config
