#include "siamese/io/strict_json.h"

#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/io/message.h"

namespace siamese::io {

void require_strict_json(std::string_view text, std::string_view file, int deepest) {
  using nlohmann::json;
  constexpr size_t kLongest = 100'000'000;
  if (text.size() > kLongest) {
    throw DataError(fmt::format("{}: expected JSON of at most {} bytes, got {}", file, kLongest, text.size()));
  }
  if (text.find('\0') != std::string_view::npos) throw DataError(fmt::format("{}: not valid JSON: a NUL", file));
  std::vector<std::set<std::string>> keys;
  const auto check = [&](int depth, json::parse_event_t event, const json& parsed) {
    if (depth > deepest) throw DataError(fmt::format("{}: expected JSON at most {} deep", file, deepest));
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) {
      throw DataError(fmt::format("{}: the key {} stands twice", file, in_quotes(parsed.get<std::string>())));
    }
    return true;
  };
  try {
    const json parsed = json::parse(text, check);
  } catch (const json::exception&) {
    throw DataError(fmt::format("{}: not valid JSON", file));
  }
}

}  // namespace siamese::io
