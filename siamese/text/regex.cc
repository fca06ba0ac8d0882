#include "siamese/text/regex.h"

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/io/message.h"
#include "siamese/text/characters.h"
#include "siamese/text/regex_syntax.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace siamese::text {

namespace {

constexpr size_t kJitStack = size_t{32} << 20;

// What matching needs beside the pattern, kept for each thread.
struct Scratch {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(32 << 10, kJitStack, nullptr);

  Scratch() {
    if (data == nullptr || context == nullptr || stack == nullptr) throw std::bad_alloc();
    pcre2_jit_stack_assign(context, nullptr, stack);
  }
  ~Scratch() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
};

std::string message_of(int code) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

struct Regex::Code {
  pcre2_code* code;
  explicit Code(pcre2_code* compiled) : code(compiled) {}
  ~Code() { pcre2_code_free(code); }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
};

Regex::Regex(const std::string& pattern, const std::string& where) : pattern_(pattern), where_(where) {
  const std::string ours = translate_regex(pattern, where);
  int error = 0;
  PCRE2_SIZE offset = 0;
  auto* const code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(ours.data()), ours.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr);
  if (code == nullptr) {
    throw DataError(fmt::format("{}: the regular expression {} is not understood: {}", where, io::in_quotes(pattern),
                                message_of(error)));
  }
  code_ = std::make_unique<Code>(code);
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without it (another processor) the interpreter serves
}

Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

bool Regex::Walk::next(size_t& begin, size_t& end) {
  thread_local Scratch scratch;
  while (!text_.empty() && from_ <= text_.size()) {
    const int found = pcre2_match(regex_.code_->code, reinterpret_cast<PCRE2_SPTR>(text_.data()), text_.size(), from_,
                                  PCRE2_NO_UTF_CHECK, scratch.data, scratch.context);
    if (found == PCRE2_ERROR_NOMATCH) return false;
    if (found < 0) {
      throw DataError(fmt::format("{}: the regular expression {} gave up on a text of {} bytes: {}", regex_.where_,
                                  io::in_quotes(regex_.pattern_), text_.size(), message_of(found)));
    }
    const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(scratch.data);
    begin = ends[0];
    end = ends[1];
    if (begin == end && end == last_end_) {
      from_ += from_ < text_.size() ? character_bytes(text_[from_]) : 1;
      continue;
    }
    from_ = last_end_ = end;
    return true;
  }
  return false;
}

}  // namespace siamese::text
