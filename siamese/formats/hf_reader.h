// A config.json of the transformers package, key by key. What cannot be read is refused by its key, DataError.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/base/join.h"
#include "siamese/config/fields.h"
#include "siamese/io/message.h"
#include "siamese/io/strict_json.h"

namespace siamese::formats {

// Reads one key after the other into the model section.
class HfReader {
 public:
  using json = nlohmann::json;

  HfReader(const json& object, const std::string& file) : object_(object), file_(file) {}

  [[noreturn]] void refuse(const std::string& key, const std::string& expected, const json& got) const {
    throw DataError(file_ + ": " + key + ": expected " + expected + ", got " + io::in_quotes(io::json_text(got)));
  }
  // nullptr when the key is missing or null.
  const json* find(const char* key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  void take_size(const char* key, std::string_view ours) {
    const json* const value = find(key);
    if (value == nullptr) return;
    if (!value->is_number_integer() || *value < 1) refuse(key, "a whole number >= 1", *value);
    put(ours, config::print(value->get<int64_t>()));
  }
  void take_number(const char* key, std::string_view ours) {
    if (const json* const value = find(key)) put_number(key, *value, ours);
  }
  void put_number(const std::string& key, const json& value, std::string_view ours) {
    if (!value.is_number() || !(value.get<double>() > 0)) refuse(key, "a number > 0", value);
    put(ours, config::print(value.get<double>()));
  }
  void take_flag(const char* key, std::string_view ours) {
    const json* const value = find(key);
    if (value == nullptr) return;
    if (!value->is_boolean()) refuse(key, "true or false", *value);
    put(ours, config::print(value->get<bool>()));
  }
  // A key that may only have one of these values; missing is as good.
  void require(const char* key, const std::vector<json>& allowed) const {
    const json* const value = find(key);
    if (value == nullptr) return;
    std::vector<std::string> texts;
    for (const json& one : allowed) {
      if (one == *value) return;
      texts.push_back(io::json_text(one));
    }
    refuse(key, join(texts, " or "), *value);
  }
  void put(std::string_view ours, config::Value value) {
    value.where = file_;
    model_[ours] = std::move(value);
  }
  const json& object() const { return object_; }
  const std::string& file() const { return file_; }
  config::Value model() const { return model_; }

 private:
  const json& object_;
  const std::string& file_;
  config::Value model_ = config::Value::map();
};

}  // namespace siamese::formats
