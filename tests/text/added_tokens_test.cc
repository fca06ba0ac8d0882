#include "siamese/text/added_tokens.h"

#include "tests/text/support.h"

namespace siamese::text {
namespace {

std::string token(int id, const std::string& content, const std::string& more = "") {
  return R"({"id": )" + std::to_string(id) + R"(, "content": ")" + content + "\"" + more + "}";
}

std::vector<TokenId> ids(const std::string& added, std::string_view text, const std::string& normalizer = "") {
  FileParts parts;
  parts.model = R"({"type": "BPE", "vocab": {"a": 0, "b": 1, " ": 2}, "merges": []})";
  parts.added = "[" + added + "]";
  parts.normalizer = normalizer;
  const Tokenizer tokenizer = parts.open();
  return Encoder(tokenizer).encode(text);
}

using Ids = std::vector<TokenId>;

TEST(AddedTokens, LeftmostThenLongest) {
  const std::string added = token(3, "<x>") + "," + token(4, "<x><y>") + "," + token(5, "><");
  EXPECT_EQ(ids(added, "a<x>b"), (Ids{0, 3, 1}));
  EXPECT_EQ(ids(added, "<x><y><x>"), (Ids{4, 3}));
  EXPECT_EQ(ids(added, "<x><z"), (Ids{3}));  // the rest has no ids
}

TEST(AddedTokens, Strips) {
  EXPECT_EQ(ids(token(3, "<x>", R"(, "lstrip": true)"), "a  <x> b"), (Ids{0, 3, 2, 1}));
  EXPECT_EQ(ids(token(3, "<x>", R"(, "rstrip": true)"), "a <x>  b"), (Ids{0, 2, 3, 1}));
  EXPECT_EQ(ids(token(3, "<x>", R"(, "lstrip": true, "rstrip": true)"), " <x> <x> "), (Ids{3, 3}));
}

TEST(AddedTokens, SingleWord) {
  const std::string added = token(3, "bb", R"(, "single_word": true)");
  EXPECT_EQ(ids(added, "bb a"), (Ids{3, 2, 0}));
  EXPECT_EQ(ids(added, "abb bb"), (Ids{0, 1, 1, 2, 3}));
  EXPECT_EQ(ids(added, "bbé bb"), (Ids{1, 1, 2, 3}));
}

TEST(AddedTokens, BeforeAndAfterTheNormalizer) {
  const std::string lower = R"({"type": "Lowercase"})";
  EXPECT_EQ(ids(token(3, "AB", R"(, "normalized": true)"), "ab AB", lower), (Ids{3, 2, 3}));
  EXPECT_EQ(ids(token(3, "AB", R"(, "normalized": false)"), "ab AB", lower), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(ids(token(3, "AB", R"(, "special": true)"), "ab AB", lower), (Ids{0, 1, 2, 3}));
}

TEST(AddedTokens, RefusedWhenIdsContradict) {
  FileParts parts;
  parts.added = "[" + token(7, "a") + "]";
  expect_refused(parts, {"'a'", "7", "in the vocabulary it has 0"});
  parts.added = "[" + token(1, "<x>") + "]";
  expect_refused(parts, {"'<x>'", "so has 'b'"});
  parts.added = "[" + token(3, "<x>") + "," + token(3, "<y>") + "]";
  expect_refused(parts, {"3", "so has"});
  parts.added = "[" + token(3, "<x>") + "," + token(4, "<x>") + "]";
  expect_refused(parts, {"'<x>' stands twice"});
}

}  // namespace
}  // namespace siamese::text
