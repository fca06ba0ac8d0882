#include "siamese/text/text_stream.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "siamese/base/utf8.h"
#include "siamese/text/stop_finder.h"

namespace siamese::text {
namespace {

using nlohmann::json;

// 256 bytes as tokens in the alphabet of GPT-2, and one special token (256).
Tokenizer byte_level() {
  json vocab = json::object();
  int next = 0;
  for (int byte = 0; byte < 256; ++byte) {
    const bool shown = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    const int code = shown ? byte : 256 + next++;
    std::string letter;
    if (code < 0x80) {
      letter = static_cast<char>(code);
    } else {
      letter = {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
    }
    vocab[letter] = byte;
  }
  const json file = {{"added_tokens",
                      {{{"id", 256},
                        {"content", "<|end|>"},
                        {"special", true},
                        {"single_word", false},
                        {"lstrip", false},
                        {"rstrip", false},
                        {"normalized", false}}}},
                     {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
                     {"decoder", {{"type", "ByteLevel"}}},
                     {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", json::array()}}}};
  return Tokenizer::parse(file.dump(), "bytes");
}

// As Llama 2 has it: a space is U+2581, unknown characters are bytes, the first space of a text is left out.
Tokenizer llama_like() {
  json vocab = {{"\u2581", 256}, {"\u2581the", 257}, {"the", 258}, {"\u2581cat", 259}, {"s", 260}};
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", byte);
    vocab[name] = byte;
  }
  const json space = {{"String", "\u2581"}};
  const json file = {
      {"decoder",
       {{"type", "Sequence"},
        {"decoders",
         {{{"type", "Replace"}, {"pattern", space}, {"content", " "}},
          {{"type", "ByteFallback"}},
          {{"type", "Fuse"}},
          {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}}},
      {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", json::array()}, {"byte_fallback", true}}}};
  return Tokenizer::parse(file.dump(), "llama");
}

std::vector<std::string> pieces(const Tokenizer& tokenizer, const std::vector<TokenId>& before,
                                const std::vector<TokenId>& ids) {
  TextStream stream(tokenizer, before);
  std::vector<std::string> all;
  for (const TokenId id : ids) all.push_back(stream.add(id));
  all.push_back(stream.finish());
  for (const std::string& piece : all) {
    EXPECT_FALSE(first_invalid_utf8(std::as_bytes(std::span(piece)))) << "half a character";
  }
  return all;
}

using Pieces = std::vector<std::string>;

TEST(TextStream, NoHalfCharacters) {
  // a, the three bytes of the euro sign, b
  EXPECT_EQ(pieces(byte_level(), {}, {'a', 0xE2, 0x82, 0xAC, 'b'}), (Pieces{"a", "", "", "€", "b", ""}));
  EXPECT_EQ(pieces(llama_like(), {}, {'a', 0xE2, 0x82, 0xAC, 'b'}), (Pieces{"a", "", "", "€", "b", ""}));
  // Characters of four bytes, one after the other.
  EXPECT_EQ(pieces(byte_level(), {}, {0xF0, 0x9F, 0x98, 0x80, 0xF0, 0x9F, 0x98, 0x81}),
            (Pieces{"", "", "", "😀", "", "", "", "😁", ""}));
}

TEST(TextStream, WhatIsNoCharacterIsReplacedWhenThatIsCertain) {
  EXPECT_EQ(pieces(byte_level(), {}, {0xE2, 'x', 0x82}), (Pieces{"", "\uFFFDx", "", "\uFFFD"}));
  EXPECT_EQ(pieces(byte_level(), {}, {0xE2, 0x82}), (Pieces{"", "", "\uFFFD"}));
}

TEST(TextStream, SpacesAreThoseOfTheWholeText) {
  const Tokenizer llama = llama_like();
  // Alone a text loses its first space; after a prompt it does not.
  EXPECT_EQ(pieces(llama, {}, {257, 259, 260}), (Pieces{"the", " cat", "s", ""}));
  EXPECT_EQ(pieces(llama, {257}, {259, 260}), (Pieces{" cat", "s", ""}));
  // A prompt that ends within a character: what completes it cannot be told any more, the rest can.
  EXPECT_EQ(pieces(llama, {257, 0xE2, 0x82}, {0xAC, 259}), (Pieces{"", "\uFFFD cat", ""}));
}

TEST(TextStream, SpecialTokensAndUnknownIds) {
  EXPECT_EQ(pieces(byte_level(), {}, {'a', 256, 'b'}), (Pieces{"a", "", "b", ""}));
  EXPECT_EQ(pieces(byte_level(), {}, {'a', 9999, 'b'}), (Pieces{"a", "\uFFFD", "b", ""}));
  EXPECT_EQ(pieces(byte_level(), {9999, 'x'}, {'a'}), (Pieces{"a", ""}));
  // A model that never ends a character does not hold its text back for ever.
  const std::vector<TokenId> broken(200, 0xE2);
  const auto all = pieces(byte_level(), {}, broken);
  EXPECT_TRUE(std::any_of(all.begin(), all.end() - 1, [](const std::string& piece) { return !piece.empty(); }));
}

TEST(TextStream, PiecesAreTheDecodedText) {
  const Tokenizer tokenizer = byte_level();
  const std::string text = "Grüße, 世界! 😀 naïve — done.\n";
  const auto ids = Encoder(tokenizer).encode(text);
  std::string joined;
  for (const std::string& piece : pieces(tokenizer, {}, ids)) joined += piece;
  EXPECT_EQ(joined, text);
}

std::string told(StopFinder& finder, const std::vector<std::string>& pieces) {
  std::string all;
  for (const std::string& piece : pieces) all += finder.add(piece);
  return all + finder.finish();
}

TEST(StopFinder, EndsBeforeTheFirst) {
  StopFinder across({"\n\n", "END"});
  EXPECT_EQ(across.add("one\n"), "one");  // the line break may be the first of two
  EXPECT_EQ(across.add("two E"), "\ntwo ");
  EXPECT_EQ(across.add("N"), "");
  EXPECT_FALSE(across.found());
  EXPECT_EQ(across.add("D and more"), "");
  EXPECT_TRUE(across.found());
  EXPECT_EQ(across.add("x") + across.finish(), "");

  StopFinder none({"END"});
  EXPECT_EQ(told(none, {"EN", "E", "N"}), "ENEN");
  EXPECT_FALSE(none.found());

  StopFinder both({"bc", "abcd"});  // the one that ends first need not begin first
  EXPECT_EQ(told(both, {"xabc", "d"}), "xa");

  StopFinder earliest({"one", "two"});  // wherever they stand in the list
  EXPECT_EQ(told(earliest, {"x one two"}), "x ");

  StopFinder empty({""});
  EXPECT_EQ(told(empty, {"text"}), "text");
}

}  // namespace
}  // namespace siamese::text
