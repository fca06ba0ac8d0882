#include "siamese/formats/hf_reader.h"

#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/base/join.h"
#include "siamese/config/fields.h"
#include "siamese/io/message.h"
#include "siamese/io/strict_json.h"

namespace siamese::formats {

void HfReader::refuse(const std::string& key, const std::string& expected, const json& got) const {
  throw DataError(file_ + ": " + key + ": expected " + expected + ", got " + io::in_quotes(io::json_text(got)));
}

const nlohmann::json* HfReader::find(const char* key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void HfReader::take_size(const char* key, std::string_view ours) {
  const json* const value = find(key);
  if (value == nullptr) return;
  if (!value->is_number_integer() || *value < 1) refuse(key, "a whole number >= 1", *value);
  put(ours, config::print(value->get<int64_t>()));
}

void HfReader::take_number(const char* key, std::string_view ours) {
  if (const json* const value = find(key)) put_number(key, *value, ours);
}

void HfReader::put_number(const std::string& key, const json& value, std::string_view ours) {
  if (!value.is_number() || !(value.get<double>() > 0)) refuse(key, "a number > 0", value);
  put(ours, config::print(value.get<double>()));
}

void HfReader::take_flag(const char* key, std::string_view ours) {
  const json* const value = find(key);
  if (value == nullptr) return;
  if (!value->is_boolean()) refuse(key, "true or false", *value);
  put(ours, config::print(value->get<bool>()));
}

void HfReader::require(const char* key, const std::vector<json>& allowed) const {
  const json* const value = find(key);
  if (value == nullptr) return;
  std::vector<std::string> texts;
  for (const json& one : allowed) {
    if (one == *value) return;
    texts.push_back(io::json_text(one));
  }
  refuse(key, join(texts, " or "), *value);
}

void HfReader::put(std::string_view ours, config::Value value) {
  value.where = file_;
  model_[ours] = std::move(value);
}

}  // namespace siamese::formats
