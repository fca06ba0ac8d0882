#include "siamese/config/text.h"

#include <algorithm>

#include "siamese/base/check.h"
#include "siamese/base/join.h"
#include "siamese/base/nearest.h"
#include "siamese/base/utf8.h"

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

std::string key_hint(std::string_view key, const std::vector<std::string>& known,
                     const std::vector<std::string>& inner) {
  std::vector<std::string> meant;
  for (const std::string& path : inner) {
    if (path.ends_with("." + std::string(key))) meant.push_back("'" + path + "'");
    const size_t dot = path.find('.');
    if (path != key || dot == std::string::npos) continue;
    return " (in a file a section is a map: '" + path.substr(0, dot) + ": {" + path.substr(dot + 1) + ": ...}')";
  }
  return meant.empty() ? did_you_mean(key, known) : " (did you mean " + join(meant, " or ") + "?)";
}

}  // namespace siamese::config
