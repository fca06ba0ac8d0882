// Tokenizers of every part, with the ids and texts that the Python `tokenizers` library gives
// (fixtures/make_samples.py).
#include <fstream>
#include <sstream>

#include "tests/text/support.h"
#include <nlohmann/json.hpp>

namespace siamese::text {
namespace {

TEST(Samples, EqualToTheTokenizersLibrary) {
  std::ifstream stream(SIAMESE_TEXT_SAMPLES);
  const nlohmann::json samples = nlohmann::json::parse(stream);
  size_t texts = 0;
  for (const auto& sample : samples.at("tokenizers")) {
    const std::string name = sample.at("name").get<std::string>();
    const Tokenizer tokenizer = Tokenizer::parse(sample.at("tokenizer").dump(), name);
    Encoder encoder(tokenizer);
    for (size_t i = 0; i < samples.at("texts").size(); ++i) {
      const std::string text = samples["texts"][i].get<std::string>();
      const auto ids = encoder.encode(text);
      EXPECT_EQ(ids, sample.at("ids")[i].get<std::vector<TokenId>>()) << name << ": " << text;
      EXPECT_EQ(tokenizer.decode(ids), sample.at("decoded")[i].get<std::string>()) << name << ": " << text;
      EXPECT_EQ(encoder.encode(text, Special::left_out), sample.at("plain_ids")[i].get<std::vector<TokenId>>())
          << name << ": " << text;
      EXPECT_EQ(tokenizer.decode(ids, true), sample.at("skipped")[i].get<std::string>()) << name << ": " << text;
      ++texts;
    }
  }
  EXPECT_GT(texts, 1000U);
}

}  // namespace
}  // namespace siamese::text
