// One object of a tokenizer file, read strictly: a key of another type is an error, and a key that nobody asked for is
// one too, because what it would change is not known here.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace siamese::text {

class JsonPart {
 public:
  // `where` is what errors call it: "file: pre_tokenizer". DataError when the value is no object.
  JsonPart(const nlohmann::json& value, std::string where);

  const std::string& where() const { return where_; }

  // The value of a key; nullptr when it is absent or null.
  const nlohmann::json* find(const std::string& key);
  const nlohmann::json& need(const std::string& key);

  std::string text(const std::string& key);
  std::string text(const std::string& key, const std::string& otherwise);
  std::string character(const std::string& key, const std::string& otherwise);  // exactly one
  bool flag(const std::string& key);
  bool flag(const std::string& key, bool otherwise);
  int64_t number(const std::string& key, int64_t least, int64_t most);

  // Every entry of an array with its name; `otherwise_empty`: the key may be absent.
  void each(const std::string& key, bool otherwise_empty,
            const std::function<void(const nlohmann::json&, const std::string&)>& use);

  void ignore(std::initializer_list<const char*> keys);
  // DataError naming the first key that was not asked for.
  void done() const;

  [[noreturn]] void fail(const std::string& what) const;

 private:
  const nlohmann::json& value_;
  std::string where_;
  std::set<std::string> asked_;
};

// "a string", "an object" ...
std::string kind_text(const nlohmann::json& value);

}  // namespace siamese::text
