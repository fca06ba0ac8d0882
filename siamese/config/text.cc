#include "siamese/config/text.h"

#include <algorithm>

#include "siamese/base/check.h"
#include "siamese/base/join.h"
#include "siamese/base/nearest.h"
#include "siamese/base/utf8.h"
#include "siamese/config/value.h"

namespace siamese::config {
namespace {

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

bool is_control(unsigned char c) { return (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F; }

}  // namespace

void check_text(std::string_view text, const std::string& source) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t bytes = utf8_length(text.substr(at));
    if (bytes == 0 || is_control(static_cast<unsigned char>(text[at]))) {
      throw UsageError(source + ": line " +
                       std::to_string(1 + std::count(text.begin(), text.begin() + static_cast<long>(at), '\n')) +
                       ": expected UTF-8 text, got byte " + std::to_string(static_cast<unsigned char>(text[at])));
    }
    at += bytes;
  }
}

std::string shown(std::string_view text) {
  constexpr size_t kLongest = 200;
  if (text.size() <= kLongest) return std::string(text);
  size_t end = kLongest;
  while (end > 0 && continues(text[end])) --end;
  return std::string(text.substr(0, end)) + "...";
}

std::string key_hint(const std::string& section, std::string_view key, const std::vector<std::string>& known,
                     const std::vector<std::string>& inner) {
  const std::string before = section.empty() ? "" : section + ".";
  std::vector<std::string> meant;
  for (const std::string& path : inner) {
    if (path.ends_with("." + std::string(key))) meant.push_back("'" + before + path + "'");
    const size_t dot = path.find('.');
    if (path != key || dot == std::string::npos) continue;
    return " (in a file a section is a map: '" + path.substr(0, dot) + ": {" + path.substr(dot + 1) + ": ...}')";
  }
  if (meant.empty()) {
    if (const std::string near = nearest_match(key, known); !near.empty()) meant.push_back("'" + before + near + "'");
  }
  return meant.empty() ? "" : " (did you mean " + join(meant, " or ") + "?)";
}

std::string comma_hint(std::string_view key, const Value& map) {
  const auto closes = [](std::string_view text) {
    return text.ends_with(')') && std::count(text.begin(), text.end(), ')') > std::count(text.begin(), text.end(), '(');
  };
  const Texts leaves = flatten(map);  // "gain_x=0.5)" is a key with a dot
  const bool closed = std::any_of(leaves.begin(), leaves.end(), [&](const auto& leaf) { return closes(leaf.first); });
  if (!closed || (key.find('=') == std::string_view::npos && !closes(key))) return "";
  return " (a comma inside { } ends the value: put the scheme in quotes)";
}

}  // namespace siamese::config
