#include "siamese/text/pre_tokenizer.h"

#include "tests/text/support.h"
#include <nlohmann/json.hpp>

namespace siamese::text {
namespace {

using Strings = std::vector<std::string>;

struct Collected : PieceSink {
  void take(Piece piece) override { pieces.emplace_back(piece.text); }
  Strings pieces;
};

Strings split(const std::string& json, std::string_view text, bool first = true) {
  const nlohmann::json value = nlohmann::json::parse(json);
  PreTokenizer pre_tokenizer(&value, "test");
  pre_tokenizer.give_characters();
  Collected collected;
  pre_tokenizer.split({text, first}, collected);
  return collected.pieces;
}

std::string split_on(const std::string& behavior, const std::string& more = "") {
  return R"({"type": "Split", "pattern": {"String": "-"}, "behavior": ")" + behavior + "\"" + more + "}";
}

TEST(PreTokenizer, SplitBehaviors) {
  const std::string text = "a--b-c-";
  EXPECT_EQ(split(split_on("Removed"), text), (Strings{"a", "b", "c"}));
  EXPECT_EQ(split(split_on("Isolated"), text), (Strings{"a", "-", "-", "b", "-", "c", "-"}));
  EXPECT_EQ(split(split_on("MergedWithPrevious"), text), (Strings{"a-", "-", "b-", "c-"}));
  EXPECT_EQ(split(split_on("MergedWithNext"), text), (Strings{"a", "-", "-b", "-c", "-"}));
  EXPECT_EQ(split(split_on("Contiguous"), text), (Strings{"a", "--", "b", "-", "c", "-"}));
}

TEST(PreTokenizer, SplitInverted) {
  const std::string invert = R"(, "invert": true)";
  const std::string text = "a--b-c-";
  EXPECT_EQ(split(split_on("Removed", invert), text), (Strings{"-", "-", "-", "-"}));
  EXPECT_EQ(split(split_on("MergedWithNext", invert), text), (Strings{"a-", "-", "b-", "c-"}));
  EXPECT_EQ(split(split_on("MergedWithPrevious", invert), text), (Strings{"a", "-", "-b", "-c", "-"}));
}

TEST(PreTokenizer, Kinds) {
  EXPECT_EQ(split(R"({"type": "Digits", "individual_digits": true})", "a12²b"), (Strings{"a", "1", "2", "²", "b"}));
  EXPECT_EQ(split(R"({"type": "Digits", "individual_digits": false})", "a12²b"), (Strings{"a", "12²", "b"}));
  EXPECT_EQ(split(R"({"type": "Punctuation"})", "a$b—c"), (Strings{"a", "$", "b", "—", "c"}));
  EXPECT_EQ(split(R"({"type": "Punctuation", "behavior": "Removed"})", "a.b"), (Strings{"a", "b"}));
  EXPECT_EQ(split(R"({"type": "Whitespace"})", "a_1 b.,c\u00a0"), (Strings{"a_1", "b", ".,", "c"}));
  EXPECT_EQ(split(R"({"type": "WhitespaceSplit"})", " a.b \u3000c"), (Strings{"a.b", "c"}));
}

TEST(PreTokenizer, Metaspace) {
  EXPECT_EQ(split(R"({"type": "Metaspace"})", "a b  c"), (Strings{"▁a", "▁b", "▁", "▁c"}));
  EXPECT_EQ(split(R"({"type": "Metaspace"})", " a"), (Strings{"▁a"}));
  EXPECT_EQ(split(R"({"type": "Metaspace", "prepend_scheme": "never"})", "a b"), (Strings{"a", "▁b"}));
  EXPECT_EQ(split(R"({"type": "Metaspace", "prepend_scheme": "first"})", "a", false), (Strings{"a"}));
  EXPECT_EQ(split(R"({"type": "Metaspace", "prepend_scheme": "first"})", "a"), (Strings{"▁a"}));
  EXPECT_EQ(split(R"({"type": "Metaspace", "split": false})", "a b"), (Strings{"▁a▁b"}));
  EXPECT_EQ(split(R"({"type": "Metaspace", "replacement": "_", "add_prefix_space": false})", "a b"),
            (Strings{"a", "_b"}));
}

TEST(PreTokenizer, ByteLevel) {
  EXPECT_EQ(split(R"({"type": "ByteLevel", "add_prefix_space": false})", "it's é"), (Strings{"it", "'s", "ĠÃ©"}));
  EXPECT_EQ(split(R"({"type": "ByteLevel", "add_prefix_space": true, "use_regex": false})", "a b"), (Strings{"ĠaĠb"}));
}

TEST(PreTokenizer, StepsInTheirOrder) {
  const std::string sequence = R"({"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"},
      {"type": "Punctuation"}, {"type": "Digits", "individual_digits": true},
      {"type": "Metaspace", "prepend_scheme": "first", "split": false}]})";
  EXPECT_EQ(split(sequence, "ab.12 c"), (Strings{"▁ab", ".", "1", "2", "c"}));
}

}  // namespace
}  // namespace siamese::text
