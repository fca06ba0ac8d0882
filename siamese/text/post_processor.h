// What a tokenizer file puts around the ids of a text: TemplateProcessing (as in "<s> $A"). ByteLevel changes offsets
// only, which nobody here has. Any other step is refused by name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "siamese/text/vocabulary.h"

namespace siamese::text {

class PostProcessor {
 public:
  PostProcessor() = default;
  // `value` may be null: nothing is put around.
  PostProcessor(const nlohmann::json* value, const std::string& where);

  const std::vector<TokenId>& before() const { return before_; }
  const std::vector<TokenId>& after() const { return after_; }

 private:
  void add(const nlohmann::json& value, const std::string& where);
  void add_template(const nlohmann::json& value, const std::string& where);

  std::vector<TokenId> before_;
  std::vector<TokenId> after_;
};

}  // namespace siamese::text
