#include "siamese/eval/words.h"

#include "tests/support/errors.h"
#include <gtest/gtest.h>

#include "siamese/base/check.h"
#include "siamese/text/train.h"

namespace siamese::eval {
namespace {

data::DataConfig of_source(data::Source source) {
  data::DataConfig config;
  config.source = source;
  return config;
}

std::string trained_tokenizer() {
  text::TrainOptions options;
  options.vocab = 270;
  text::BpeTrainer trainer(options);
  for (int i = 0; i < 8; ++i) trainer.add("the cat sat on the mat, the end. ");
  return trainer.finish();
}

models::ModelConfig with_vocab(int64_t vocab) {
  models::ModelConfig config;
  config.vocab = vocab;
  return config;
}

std::unique_ptr<Words> tokenizer_words(data::Source source = data::Source::tokens) {
  return words_of_tokenizer(trained_tokenizer(), "tokenizer.json", with_vocab(270), of_source(source));
}

std::string told(Continuation& made, const std::vector<int64_t>& tokens) {
  std::string text;
  for (const int64_t token : tokens) {
    text += made.add(token);
    if (made.done()) break;
  }
  return text + made.rest();
}

TEST(Words, BytesAreToldAsWholeCharacters) {
  const auto words = words_of_source(of_source(data::Source::text));
  EXPECT_EQ(words->encode("aé", true), (std::vector<int64_t>{'a', 0xC3, 0xA9}));
  const auto text = words->text_after({});
  EXPECT_EQ(text->add('a'), "a");
  EXPECT_EQ(text->add(0xE2), "");
  EXPECT_EQ(text->add(0x82), "");
  EXPECT_EQ(text->add(0xAC), "€");
  EXPECT_EQ(text->add(0xF0), "");  // the smallest second byte that may follow is not 0x80
  EXPECT_EQ(text->add(0x9F), "");
  EXPECT_EQ(text->add('x'), "\xF0\x9Fx");  // no character: as it is
  EXPECT_EQ(text->add(0x80), "\x80");
  EXPECT_EQ(text->add(0xED), "");
  EXPECT_EQ(text->add(0xA0), "\xED\xA0");  // half of a surrogate pair
  EXPECT_EQ(text->add(0xC3), "");
  EXPECT_EQ(text->finish(), "\xC3");
}

TEST(Words, NumbersAndArithmetic) {
  const auto ids = words_of_ids();
  EXPECT_FALSE(ids->is_text());
  EXPECT_EQ(ids->encode("15496 995", true), (std::vector<int64_t>{15496, 995}));
  Continuation numbers(*ids, {1}, {});
  EXPECT_EQ(told(numbers, {3, 4}), "3 4");

  const auto sums = words_of_source(of_source(data::Source::arithmetic));
  const auto prompt = sums->encode("1+2=", true);
  EXPECT_EQ(prompt.size(), 5U);
  EXPECT_EQ(prompt.front(), sums->end());
  Continuation answer(*sums, prompt, {});
  EXPECT_EQ(told(answer, {sums->encode("\n3", true)[1], *sums->end()}), "3");
  EXPECT_EQ(answer.finish(), Finish::end);
}

TEST(Words, ATokenizerEncodesAndEnds) {
  const auto words = tokenizer_words();
  const auto tokens = words->encode("the cat", true);
  EXPECT_LT(tokens.size(), 7U);
  Continuation made(*words, {}, {});
  EXPECT_EQ(told(made, tokens), "the cat");
  EXPECT_EQ(made.finish(), Finish::length);
  EXPECT_EQ(made.tokens(), tokens);
  ASSERT_TRUE(words->end());
  EXPECT_EQ(*words->end(), 0);  // <|endoftext|>
  Continuation ended(*words, {}, {});
  EXPECT_EQ(told(ended, {tokens[0], 0}), words->token_text(tokens[0]));
  EXPECT_EQ(ended.finish(), Finish::end);
  EXPECT_EQ(ended.tokens().size(), 1U);
}

TEST(Words, StopsAreLeftOutAcrossTokens) {
  const auto words = tokenizer_words();
  const auto tokens = words->encode("the cat sat on the mat", true);
  Continuation made(*words, {}, {"t o", "mat"});
  EXPECT_EQ(told(made, tokens), "the cat sa");
  EXPECT_EQ(made.finish(), Finish::stop);
}

// What `siamese prepare` writes has no special tokens; a model from elsewhere has seen them.
TEST(Words, SpecialTokensUnlessTrainedOnTokenFiles) {
  EXPECT_FALSE(tokenizer_words(data::Source::tokens)->special());
  EXPECT_TRUE(tokenizer_words(data::Source::random)->special());
}

TEST(Words, AnotherVocabularyIsOneLine) {
  testing::expect_error<DataError>(
      [] {
        words_of_tokenizer(trained_tokenizer(), "x/tokenizer.json", with_vocab(256), of_source(data::Source::tokens));
      },
      {"x/tokenizer.json", "269", "256", "model.vocab"});
  // A model may have rows to spare.
  const auto words =
      words_of_tokenizer(trained_tokenizer(), "tokenizer.json", with_vocab(512), of_source(data::Source::tokens));
  EXPECT_EQ(words->token_text(500), "\uFFFD");
  Continuation made(*words, {}, {});
  EXPECT_EQ(told(made, {500}), "\uFFFD");
}

TEST(Words, TextThatIsNotUtf8IsRefused) { EXPECT_THROW(tokenizer_words()->encode("a\xFF", true), DataError); }

}  // namespace
}  // namespace siamese::eval
