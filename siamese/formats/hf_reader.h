// A config.json of the transformers package, read one key after the other into the model section. What cannot be read
// is refused by its key, DataError.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "siamese/config/value.h"

namespace siamese::formats {

// Both must outlive it; `file` is what errors call the object.
class HfReader {
 public:
  using json = nlohmann::json;

  HfReader(const json& object, const std::string& file) : object_(object), file_(file) {}

  [[noreturn]] void refuse(const std::string& key, const std::string& expected, const json& got) const;
  // nullptr when the key is missing or null.
  const json* find(const char* key) const;
  void take_size(const char* key, std::string_view ours);
  void take_number(const char* key, std::string_view ours);
  void put_number(const std::string& key, const json& value, std::string_view ours);
  void take_flag(const char* key, std::string_view ours);
  // A key that may only have one of these values; missing is as good.
  void require(const char* key, const std::vector<json>& allowed) const;
  void put(std::string_view ours, config::Value value);
  const json& object() const { return object_; }
  const std::string& file() const { return file_; }
  config::Value model() const { return model_; }

 private:
  const json& object_;
  const std::string& file_;
  config::Value model_ = config::Value::map();
};

}  // namespace siamese::formats
