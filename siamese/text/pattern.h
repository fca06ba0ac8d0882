// What Replace and Split look for: a literal text or a regular expression.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <variant>

#include "siamese/text/json_part.h"
#include "siamese/text/regex.h"

namespace siamese::text {

class Pattern {
 public:
  // {"String": "..."} or {"Regex": "..."}
  Pattern(const nlohmann::json& value, const std::string& where);

  // Calls `use(begin, end)` for every match from left to right.
  template <class Use>
  void each(std::string_view text, Use use) const {
    if (regex_) {
      size_t begin = 0;
      size_t end = 0;
      for (Regex::Walk walk(*regex_, text); walk.next(begin, end);) use(begin, end);
      return;
    }
    if (literal_.empty()) return;
    for (size_t at = text.find(literal_); at != std::string_view::npos;
         at = text.find(literal_, at + literal_.size())) {
      use(at, at + literal_.size());
    }
  }

  const std::string& source() const { return regex_ ? regex_->pattern() : literal_; }
  bool is_regex() const { return regex_ != nullptr; }

 private:
  std::string literal_;
  std::unique_ptr<Regex> regex_;
};

// Every match of `pattern` in `text` replaced; false when there is none.
bool replace_all(const Pattern& pattern, std::string_view content, std::string_view text, std::string& out);

}  // namespace siamese::text
