#include "siamese/io/strict_json.h"

#include <limits>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/io/message.h"

namespace siamese::io {

namespace {

template <class Json>
Json read(std::string_view text, std::string_view file, int deepest, size_t most_keys) {
  constexpr size_t kLongest = 100'000'000;
  if (text.size() > kLongest) {
    throw DataError(fmt::format("{}: expected JSON of at most {} bytes, got {}", file, kLongest, text.size()));
  }
  if (text.find('\0') != std::string_view::npos) throw DataError(fmt::format("{}: not valid JSON: a NUL", file));
  std::vector<std::set<std::string>> keys;
  const auto check = [&](int depth, typename Json::parse_event_t event, const Json& parsed) {
    using Event = typename Json::parse_event_t;
    if (depth > deepest) throw DataError(fmt::format("{}: expected JSON at most {} deep", file, deepest));
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key && !keys.back().insert(parsed.template get<std::string>()).second) {
      throw DataError(fmt::format("{}: the key {} stands twice", file, in_quotes(parsed.template get<std::string>())));
    }
    if (event == Event::key && keys.back().size() > most_keys) {
      throw DataError(fmt::format("{}: expected objects of at most {} keys", file, most_keys));
    }
    return true;
  };
  try {
    return Json::parse(text, check);
  } catch (const typename Json::exception&) {
    throw DataError(fmt::format("{}: not valid JSON: {}", file, in_quotes(text)));
  }
}

}  // namespace

nlohmann::json read_json(std::string_view text, std::string_view file, int deepest) {
  return read<nlohmann::json>(text, file, deepest, std::numeric_limits<size_t>::max());
}

nlohmann::ordered_json read_ordered_json(std::string_view text, std::string_view file, int deepest) {
  return read<nlohmann::ordered_json>(text, file, deepest, 4096);
}

std::string json_text(const nlohmann::json& value, int indent) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace);
}

std::string json_text(const nlohmann::ordered_json& value, int indent) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace siamese::io
