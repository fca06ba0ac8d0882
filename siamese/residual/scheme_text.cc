#include "siamese/residual/scheme_text.h"

#include <algorithm>
#include <cctype>

#include "siamese/base/check.h"
#include "siamese/config/text.h"

namespace siamese::residual {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-' || c == '+';
  });
}

[[noreturn]] void bad(std::string_view whole, const std::string& why) {
  throw UsageError("residual scheme '" + config::shown(whole) + "': " + why +
                   "; expected a name, or name(key=value, ...)");
}

}  // namespace

SchemeText parse_scheme_text(std::string_view whole) {
  constexpr size_t kMaxBytes = 4096;  // arguments are looked up one by one
  if (whole.size() > kMaxBytes) bad(whole, std::to_string(whole.size()) + " bytes are too long");
  const std::string_view text = trim(whole);
  SchemeText result;
  const size_t open = text.find('(');
  const std::string_view name = trim(text.substr(0, open));
  if (!is_word(name)) bad(whole, "the name is missing or not a word");
  result.name = std::string(name);
  if (open == std::string_view::npos) return result;
  if (text.back() != ')') bad(whole, "the closing ')' is missing");
  std::string_view inside = trim(text.substr(open + 1, text.size() - open - 2));
  if (inside.empty()) return result;
  while (true) {
    const size_t comma = inside.find(',');
    const std::string_view argument = trim(inside.substr(0, comma));
    const size_t equals = argument.find('=');
    if (equals == std::string_view::npos) bad(whole, "'" + config::shown(argument) + "' is not key=value");
    const std::string_view key = trim(argument.substr(0, equals));
    const std::string_view value = trim(argument.substr(equals + 1));
    if (!is_word(key) || !is_word(value)) bad(whole, "'" + config::shown(argument) + "' is not key=value");
    if (result.arguments.find(key) != nullptr) bad(whole, "'" + config::shown(key) + "' is given twice");
    result.arguments[key] = config::Value::scalar(std::string(value));
    if (comma == std::string_view::npos) break;
    inside = trim(inside.substr(comma + 1));
  }
  return result;
}

std::string print_scheme_text(const SchemeText& text) {
  if (text.arguments.entries.empty()) return text.name;
  std::string out = text.name + "(";
  for (size_t i = 0; i < text.arguments.entries.size(); ++i) {
    const auto& [key, value] = text.arguments.entries[i];
    out += (i > 0 ? ", " : "") + key + "=" + value.text;
  }
  return out + ")";
}

}  // namespace siamese::residual
