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

// How a key is written that an error proposes: behind its section, "optim.lr", or alone, as in name(key=value).
enum class Written { behind_section, alone };

// The keys of a section by name: those that stand in it, and by full name, from there on, those of its own sections.
struct KnownKeys {
  std::vector<std::string> here;
  std::vector<std::string> all;
};

// UsageError about `key` of `map`, which is not among `known`: where it stands, and what it may have meant, as a key
// that can be written in its place. `section` is the name of `map`, "" for the whole.
[[noreturn]] void refuse_unknown_key(const Value& map, const std::string& section, const std::string& key,
                                     const KnownKeys& known, Written written);

}  // namespace siamese::config
