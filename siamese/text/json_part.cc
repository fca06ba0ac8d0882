#include "siamese/text/json_part.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/io/message.h"
#include "siamese/text/characters.h"

namespace siamese::text {

std::string kind_text(const nlohmann::json& value) {
  switch (value.type()) {
    case nlohmann::json::value_t::null:
      return "null";
    case nlohmann::json::value_t::object:
      return "an object";
    case nlohmann::json::value_t::array:
      return "an array";
    case nlohmann::json::value_t::string:
      return io::in_quotes(value.get_ref<const std::string&>());
    case nlohmann::json::value_t::boolean:
      return value.get<bool>() ? "true" : "false";
    default:
      return value.dump();
  }
}

JsonPart::JsonPart(const nlohmann::json& value, std::string where) : value_(value), where_(std::move(where)) {
  if (!value.is_object()) fail("expected an object, got " + kind_text(value));
}

void JsonPart::fail(const std::string& what) const { throw DataError(where_ + ": " + what); }

const nlohmann::json* JsonPart::find(const std::string& key) {
  asked_.insert(key);
  const auto found = value_.find(key);
  return found == value_.end() || found->is_null() ? nullptr : &*found;
}

const nlohmann::json& JsonPart::need(const std::string& key) {
  const auto* const value = find(key);
  if (value == nullptr) fail(fmt::format("the key '{}' is missing", key));
  return *value;
}

std::string JsonPart::text(const std::string& key) {
  const auto& value = need(key);
  if (!value.is_string()) fail(fmt::format("{}: expected a string, got {}", key, kind_text(value)));
  return value.get<std::string>();
}

std::string JsonPart::text(const std::string& key, const std::string& otherwise) {
  return find(key) == nullptr ? otherwise : text(key);
}

std::string JsonPart::character(const std::string& key, const std::string& otherwise) {
  std::string value = text(key, otherwise);
  if (!is_one_character(value)) fail(fmt::format("{}: expected one character, got {}", key, io::in_quotes(value)));
  return value;
}

bool JsonPart::flag(const std::string& key) {
  const auto& value = need(key);
  if (!value.is_boolean()) fail(fmt::format("{}: expected true or false, got {}", key, kind_text(value)));
  return value.get<bool>();
}

bool JsonPart::flag(const std::string& key, bool otherwise) { return find(key) == nullptr ? otherwise : flag(key); }

int64_t JsonPart::number(const std::string& key, int64_t least, int64_t most) {
  const auto& value = need(key);
  if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{INT64_MAX}) ||
      value.get<int64_t>() < least || value.get<int64_t>() > most) {
    fail(fmt::format("{}: expected a whole number from {} to {}, got {}", key, least, most, kind_text(value)));
  }
  return value.get<int64_t>();
}

void JsonPart::each(const std::string& key, bool otherwise_empty,
                    const std::function<void(const nlohmann::json&, const std::string&)>& use) {
  if (otherwise_empty && find(key) == nullptr) return;
  const auto& values = need(key);
  if (!values.is_array()) fail(fmt::format("{}: expected an array, got {}", key, kind_text(values)));
  for (size_t i = 0; i < values.size(); ++i) use(values[i], fmt::format("{}.{}[{}]", where_, key, i));
}

void JsonPart::ignore(std::initializer_list<const char*> keys) { asked_.insert(keys.begin(), keys.end()); }

void JsonPart::done() const {
  for (const auto& [key, value] : value_.items()) {
    if (!asked_.contains(key)) fail(fmt::format("the key {} is not known", io::in_quotes(key)));
  }
}

}  // namespace siamese::text
