#include "siamese/text/bpe.h"

#include "tests/text/support.h"

namespace siamese::text {
namespace {

std::vector<TokenId> ids(const FileParts& parts, std::string_view text) {
  const Tokenizer tokenizer = parts.open();
  return Encoder(tokenizer).encode(text);
}

TEST(Bpe, LowestRankFirstThenLeftmost) {
  FileParts parts;
  parts.model =
      R"({"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "bc": 3, "ab": 4, "abc": 5, "aa": 6},
          "merges": ["b c", "a b", "ab c", ["a", "a"]]})";
  EXPECT_EQ(ids(parts, "abc"), (std::vector<TokenId>{0, 3}));  // b c comes before a b, and "a bc" is no merge
  EXPECT_EQ(ids(parts, "abab"), (std::vector<TokenId>{4, 4}));
  EXPECT_EQ(ids(parts, "aaa"), (std::vector<TokenId>{6, 0}));       // the left pair
  EXPECT_EQ(ids(parts, "aaaab"), (std::vector<TokenId>{6, 0, 4}));  // a b has the lower rank
}

TEST(Bpe, UnknownCharacters) {
  FileParts parts;
  EXPECT_EQ(ids(parts, "xaxxb"), (std::vector<TokenId>{2}));  // they vanish, and a and b meet
  parts.model = R"({"type": "BPE", "vocab": {"a": 0, "b": 1, "<unk>": 2}, "merges": [], "unk_token": "<unk>"})";
  EXPECT_EQ(ids(parts, "xaxxb"), (std::vector<TokenId>{2, 0, 2, 2, 1}));
  parts.model.insert(parts.model.size() - 1, R"(, "fuse_unk": true)");
  EXPECT_EQ(ids(parts, "xaxxb"), (std::vector<TokenId>{2, 0, 2, 1}));
}

TEST(Bpe, ByteFallback) {
  FileParts parts;
  parts.model = R"({"type": "BPE", "vocab": {"a": 0, "<0xC3>": 1, "<0xA9>": 2, "<unk>": 3}, "merges": [],
                    "unk_token": "<unk>", "byte_fallback": true})";
  EXPECT_EQ(ids(parts, "aéa"), (std::vector<TokenId>{0, 1, 2, 0}));
  EXPECT_EQ(ids(parts, "aüa"), (std::vector<TokenId>{0, 3, 0}));  // <0xBC> is missing
}

TEST(Bpe, IgnoreMerges) {
  FileParts parts;
  parts.model = R"({"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4}, "merges": ["a b"],
                    "ignore_merges": true})";
  parts.pre_tokenizer = R"({"type": "WhitespaceSplit"})";
  EXPECT_EQ(ids(parts, "abc abcc abc"), (std::vector<TokenId>{4, 3, 2, 2, 4}));
}

TEST(Bpe, BothWaysToMergeAgree) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    MergeTable merges(64);
    for (uint32_t rank = 0; rank < 64; ++rank) {
      // Some pairs twice, as a file may have them.
      merges.put(static_cast<uint32_t>(random_below(4 + rank / 2, seed, 1, rank)),
                 static_cast<uint32_t>(random_below(4 + rank / 2, seed, 2, rank)), {rank, 4 + rank});
    }
    std::vector<TokenId> quadratic(1 + random_below(200, seed, 3, 0));
    for (size_t i = 0; i < quadratic.size(); ++i) quadratic[i] = static_cast<TokenId>(random_below(4, seed, 4, i));
    std::vector<TokenId> queued = quadratic;
    merge_short(merges, quadratic);
    merge_long(merges, queued);
    EXPECT_EQ(quadratic, queued) << seed;
  }
}

// A long word is cut where no merge can join: the same ids as without cutting.
TEST(Bpe, LongWordsFallIntoParts) {
  Vocabulary vocabulary(40);
  std::vector<std::pair<std::string, std::string>> merges;
  for (TokenId id = 0; id < 6; ++id) vocabulary.add(std::string(1, static_cast<char>('a' + id)), id);
  vocabulary.add("é", 6);
  TokenId next = 7;
  for (uint64_t i = 0; next < 40; ++i) {
    const std::string* const left = vocabulary.token_of(static_cast<TokenId>(random_below(next, 1, 1, i)));
    const std::string* const right = vocabulary.token_of(static_cast<TokenId>(random_below(next, 1, 2, i)));
    if (left->size() + right->size() > 5 || !vocabulary.add(*left + *right, next)) continue;
    merges.emplace_back(*left, *right);
    ++next;
  }
  const Bpe bpe(vocabulary, merges, {.byte_fallback = false}, "test");
  MergeTable table(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    table.put(*vocabulary.id_of(merges[rank].first), *vocabulary.id_of(merges[rank].second),
              {static_cast<uint32_t>(rank), *vocabulary.id_of(merges[rank].first + merges[rank].second)});
  }
  Bpe::Scratch scratch;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::string word;
    std::vector<TokenId> expected;
    for (size_t i = 0; i < 1 + seed; ++i) {
      const auto id = static_cast<TokenId>(random_below(7, seed, 5, i));
      word += *vocabulary.token_of(id);
      expected.push_back(id);
    }
    merge_long(table, expected);
    std::vector<TokenId> got;
    bpe.encode(word, scratch, got);
    EXPECT_EQ(got, expected) << word;
    got.clear();
    bpe.encode(word, scratch, got);  // from the cache
    EXPECT_EQ(got, expected) << word;
  }
}

TEST(Bpe, WordCacheTellsWordsApart) {
  WordCache cache;
  std::vector<uint32_t> out;
  std::string word;
  for (size_t length = 1; length <= WordCache::kLongest; ++length) {
    word.assign(length, 'x');
    const uint32_t value = static_cast<uint32_t>(length);
    std::vector<uint32_t> ids(length, value);
    cache.put(WordCache::Key(word), ids.data(), ids.size());
    for (size_t at = 0; at < length; ++at) {  // a word that differs in one byte only
      word[at] = 'y';
      EXPECT_FALSE(cache.find(WordCache::Key(word), out)) << length << " " << at;
      word[at] = 'x';
    }
    ASSERT_TRUE(cache.find(WordCache::Key(word), out));
    EXPECT_EQ(out, ids);
    out.clear();
  }
}

}  // namespace
}  // namespace siamese::text
