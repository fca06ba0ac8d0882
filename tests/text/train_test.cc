#include "siamese/text/train.h"

#include "tests/text/support.h"

namespace siamese::text {
namespace {

Tokenizer trained(const std::vector<std::string>& texts, TrainOptions options) {
  BpeTrainer trainer(std::move(options));
  for (const std::string& text : texts) trainer.add(text);
  return Tokenizer::parse(trainer.finish(), "trained");
}

std::vector<std::string> tokens_from(const Tokenizer& tokenizer, TokenId first) {
  std::vector<std::string> tokens;
  for (TokenId id = first; id < tokenizer.size(); ++id) tokens.push_back(*tokenizer.token_of(id));
  return tokens;
}

TEST(Train, MostFrequentPairFirstTiesByLowerIds) {
  // Words: low x 5, lower x 2, newest x 6, widest x 3. The textbook's merges.
  std::string text;
  for (int i = 0; i < 5; ++i) text += "low\n";
  for (int i = 0; i < 2; ++i) text += "lower\n";
  for (int i = 0; i < 6; ++i) text += "newest\n";
  for (int i = 0; i < 3; ++i) text += "widest\n";
  const Tokenizer tokenizer = trained({text}, {.vocab = 257 + 6});
  // es 9 (and st 9: e < s), est 9; lo 7 (and ow 7: l < o), low 7; then ew 6 before ne, wes... by ids.
  EXPECT_EQ(tokens_from(tokenizer, 257), (std::vector<std::string>{"es", "est", "lo", "low", "ew", "new"}));
  Encoder encoder(tokenizer);
  EXPECT_EQ(encoder.encode("newest").size(), 2U);
}

TEST(Train, StopsWhenNoPairIsFrequentEnough) {
  EXPECT_EQ(trained({"ab ab"}, {.vocab = 1000, .min_count = 2}).size(), 258U);
  EXPECT_EQ(trained({"ab"}, {.vocab = 1000, .min_count = 2}).size(), 257U);
}

TEST(Train, RoundTripOfAnyText) {
  std::vector<std::string> texts;
  for (uint64_t seed = 0; seed < 50; ++seed) texts.push_back(random_text(seed, 200));
  const Tokenizer tokenizer = trained(texts, {.vocab = 600, .special = {"<|endoftext|>", "<|pad|>"}});
  EXPECT_EQ(tokenizer.id_of("<|pad|>"), 1U);
  Encoder encoder(tokenizer);
  for (uint64_t seed = 100; seed < 600; ++seed) {
    const std::string text = random_text(seed, 60) + (seed % 3 == 0 ? "<|pad|>" : "");
    EXPECT_EQ(tokenizer.decode(encoder.encode(text)), text) << seed;
  }
}

TEST(Train, TheSameFileEveryTime) {
  std::vector<std::string> texts;
  for (uint64_t seed = 0; seed < 20; ++seed) texts.push_back(random_text(seed, 100));
  BpeTrainer one({.vocab = 400});
  BpeTrainer other({.vocab = 400});
  for (const auto& text : texts) one.add(text);
  for (auto text = texts.rbegin(); text != texts.rend(); ++text) other.add(*text);
  EXPECT_EQ(one.finish(), other.finish());
}

TEST(Train, Refusals) {
  EXPECT_THROW(BpeTrainer({.vocab = 256}), UsageError);
  EXPECT_THROW(BpeTrainer({.vocab = 1000, .special = {"a", "a"}}), UsageError);
  EXPECT_THROW(BpeTrainer({.vocab = 1000, .special = {""}}), UsageError);
  EXPECT_THROW(BpeTrainer({.vocab = 1000}).add("\xFF"), DataError);
}

}  // namespace
}  // namespace siamese::text
