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

// What is proposed, in quotes and behind `before`; "" for nothing.
std::string hint(const std::string& before, const std::vector<std::string>& meant) {
  std::vector<std::string> quoted;
  for (const std::string& path : meant) quoted.push_back("'" + before + path + "'");
  return quoted.empty() ? "" : " (did you mean " + join(quoted, " or ") + "?)";
}

// `key` alone: another section's, the name of one with a dot, or nearly one of those here.
std::string key_hint(const std::string& before, const std::string& key, const KnownKeys& known) {
  std::vector<std::string> meant;
  for (const std::string& path : known.all) {
    if (path.ends_with("." + key)) meant.push_back(path);
    const size_t dot = path.find('.');
    if (path != key || dot == std::string::npos) continue;
    return " (in a file a section is a map: '" + path.substr(0, dot) + ": {" + path.substr(dot + 1) + ": ...}')";
  }
  if (meant.empty()) meant.push_back(nearest_match(key, known.here));
  return meant.front().empty() ? "" : hint(before, meant);
}

// The key of the section nearest to `section` that is nearest to `key`: optm.lr means optim.lr. "" when there is none.
std::string nearest_inner(const std::string& section, const std::string& key, const KnownKeys& known) {
  const std::string near = nearest_match(section, known.here);
  std::vector<std::string> keys;
  for (const std::string& path : known.all) {
    if (!near.empty() && path.starts_with(near + ".")) keys.push_back(path.substr(near.size() + 1));
  }
  const std::string found = nearest_match(key, keys);
  return found.empty() ? "" : near + "." + found;
}

// Whether `key`, beside others in `map`, is what follows a comma in a scheme without quotes:
// {model.residual: siamese(x=hybrid, input_norm=false)}.
bool follows_a_comma(const std::string& key, const Value& map) {
  const auto closes = [](const std::string& text) {
    return text.ends_with(')') && std::count(text.begin(), text.end(), ')') > std::count(text.begin(), text.end(), '(');
  };
  const Texts leaves = flatten(map);  // "gain_x=0.5)" is a key with a dot
  const bool closed = std::any_of(leaves.begin(), leaves.end(), [&](const auto& leaf) { return closes(leaf.first); });
  return closed && (key.find('=') != std::string::npos || closes(key));
}

}  // namespace

void refuse_unknown_key(const Value& map, const std::string& section, const std::string& key, const KnownKeys& known,
                        Written written) {
  const Value& child = *map.find(key);
  const std::string place = child.where.empty() ? "" : child.where + ": ";
  const std::string before = section.empty() ? "" : section + ".";
  const std::string name = place + before + shown(key);
  if (follows_a_comma(key, map)) {
    throw UsageError(name + ": unknown key (a comma inside { } ends the value: put the scheme in quotes)");
  }
  const std::string proposed = written == Written::alone ? "" : before;
  if (const Texts leaves = flatten(child); child.is_map() && leaves.size() == 1) {
    if (const std::string inner = nearest_inner(key, leaves.front().first, known); !inner.empty()) {
      throw UsageError(name + "." + shown(leaves.front().first) + ": unknown key" + hint(proposed, {inner}));
    }
  }
  throw UsageError(name + ": unknown key" + key_hint(proposed, key, known));
}

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

}  // namespace siamese::config
