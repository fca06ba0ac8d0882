// Tokenizer files and the text they are given.
#include "tests/hostile/support.h"

namespace siamese::hostile {
namespace {

const std::string kGood =
    R"({"added_tokens":[{"id":3,"content":"<s>","lstrip":true,"special":true}],"normalizer":{"type":"NFC"},)"
    R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"\\s+"},"behavior":"MergedWithNext","invert":false},)"
    R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"s"}},{"Sequence":{"id":"A"}}],)"
    R"("special_tokens":{"s":{"ids":[3]}}},"decoder":{"type":"Fuse"},)"
    R"("model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}})";

TEST(HostileTokenizer, DamagedFiles) { expect_holds_when_damaged(fuzz::check_tokenizer_file, kGood); }

TEST(HostileTokenizer, DeepAndLarge) {
  std::string deep = kGood;
  const std::string open = R"({"type":"Sequence","normalizers":[)";
  deep.replace(deep.find(R"({"type":"NFC"})"), 14, repeated(open, 5000) + repeated("]}", 5000));
  expect_holds(fuzz::check_tokenizer_file, deep);
  std::string many = kGood;
  many.replace(many.find("\"a b\""), 5, "\"a b\"" + repeated(",\"a b\"", 100'000));
  expect_holds(fuzz::check_tokenizer_file, many);
}

TEST(HostileTokenizer, PatternsThatTakeForever) {
  std::string slow = kGood;
  slow.replace(slow.find(R"(\\s+)"), 4, "(a+a*)+$");
  expect_holds(fuzz::check_tokenizer_file, slow);
}

TEST(HostileTokenizer, Texts) {
  for (const char c : {'a', ' ', '\n', '\'', '1', '<'}) {
    expect_holds(fuzz::check_tokenizer_text, std::string(100'000, c));
  }
  expect_holds(fuzz::check_tokenizer_text, repeated("\xCC\x81\xCC\x96", 50'000));  // marks in the wrong order
  expect_holds(fuzz::check_tokenizer_text, repeated("<s> ", 50'000));
  expect_holds(fuzz::check_tokenizer_text, repeated("\xEF\xB7\xBA", 50'000));  // one character that becomes 18
  expect_holds(fuzz::check_tokenizer_text, "a\xED\xA0\x80");
  expect_holds_when_damaged(fuzz::check_tokenizer_text, "It's 12 \xC3\xA9\xE4\xB8\xAD<s>ab\n");
}

}  // namespace
}  // namespace siamese::hostile
