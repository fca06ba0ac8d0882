// The regular expressions of tokenizer files. They are written for Oniguruma; PCRE2 runs them. What the two read
// differently is translated (regex_syntax.h), and what cannot be is refused when the file is read.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace siamese::text {

class Regex {
 public:
  // `where` names the part of the file in errors. DataError for a pattern that is not understood.
  Regex(const std::string& pattern, const std::string& where);

  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  const std::string& pattern() const { return pattern_; }

  // The matches in valid UTF-8, from left to right. An empty match right after the one before is none. One walk belongs
  // to one thread. DataError when a pattern would try more ways to match than anybody waits for.
  class Walk {
   public:
    Walk(const Regex& regex, std::string_view text) : regex_(regex), text_(text) {}

    bool next(size_t& begin, size_t& end);

   private:
    const Regex& regex_;
    std::string_view text_;
    size_t from_ = 0;
    size_t last_end_ = static_cast<size_t>(-1);
  };

 private:
  struct Code;
  std::string pattern_;
  std::string where_;
  std::unique_ptr<Code> code_;
};

}  // namespace siamese::text
