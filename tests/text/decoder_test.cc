#include "siamese/text/decoder.h"

#include "tests/text/support.h"
#include <nlohmann/json.hpp>

namespace siamese::text {
namespace {

std::string decoded(const std::string& json, const std::vector<std::string>& tokens) {
  const nlohmann::json value = nlohmann::json::parse(json);
  return Decoder(&value, "test").decode(tokens);
}

TEST(Decoder, ByteLevel) {
  const std::string json = R"({"type": "ByteLevel"})";
  EXPECT_EQ(decoded(json, {"Hello", "Ġworld", "Ã", "©"}), "Hello world\u00e9");
  EXPECT_EQ(decoded(json, {"a", "Ã"}), "a\ufffd");
  EXPECT_EQ(decoded(json, {"中", "a"}), "中a");  // no byte: as it is
}

TEST(Decoder, Llama) {
  const std::string json = R"({"type": "Sequence", "decoders": [
      {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
      {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})";
  EXPECT_EQ(decoded(json, {"▁Hello", "▁", "<0xC3>", "<0xA9>", "!"}), "Hello \u00e9!");
  EXPECT_EQ(decoded(json, {"a", "<0xC3>", "<0xC3>", "b"}), "a\ufffd\ufffdb");
  EXPECT_EQ(decoded(json, {}), "");
}

TEST(Decoder, Metaspace) {
  EXPECT_EQ(decoded(R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"})", {"▁a", "▁b"}), "a b");
  EXPECT_EQ(decoded(R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"})", {"▁a", "▁b"}), " a b");
}

TEST(Decoder, None) { EXPECT_EQ(Decoder(nullptr, "test").decode({"a", "b"}), "a b"); }

// One U+FFFD for every longest beginning of a character.
TEST(Decoder, RepairedUtf8) {
  const std::string r = "\ufffd";
  EXPECT_EQ(repaired_utf8("a\xF0\x9F\x98z"), "a" + r + "z");
  EXPECT_EQ(repaired_utf8("\xE4\xB8"), r);
  EXPECT_EQ(repaired_utf8("\xC0\xAF"), r + r);
  EXPECT_EQ(repaired_utf8("\xED\xA0\x80"), r + r + r);
  EXPECT_EQ(repaired_utf8("\xF4\x90\x80\x80"), r + r + r + r);
  EXPECT_EQ(repaired_utf8("\xE4\xC3\xA9"), r + "\u00e9");
}

}  // namespace
}  // namespace siamese::text
