#include "siamese/text/normalizer.h"

#include "tests/text/support.h"
#include <nlohmann/json.hpp>

#include "siamese/text/unicode_form.h"

namespace siamese::text {
namespace {

std::string normalized(const std::string& json, std::string_view text) {
  const nlohmann::json value = nlohmann::json::parse(json);
  std::string buffer;
  return std::string(Normalizer(&value, "test").apply(text, buffer));
}

TEST(Normalizer, Forms) {
  const std::string text = "ab\u00e9 e\u0301 \ufb01 \uac00 \u1100\u1161 \u212b";
  EXPECT_EQ(normalized(R"({"type": "NFC"})", text), "ab\u00e9 \u00e9 \ufb01 \uac00 \uac00 \u00c5");
  EXPECT_EQ(normalized(R"({"type": "NFD"})", text), "abe\u0301 e\u0301 \ufb01 \u1100\u1161 \u1100\u1161 A\u030a");
  EXPECT_EQ(normalized(R"({"type": "NFKC"})", text), "ab\u00e9 \u00e9 fi \uac00 \uac00 \u00c5");
  EXPECT_EQ(normalized(R"({"type": "NFKD"})", text), "abe\u0301 e\u0301 fi \u1100\u1161 \u1100\u1161 A\u030a");
  EXPECT_EQ(normalized(R"({"type": "NFC"})", "a\u0316\u0301\u0300"), "\u00e1\u0316\u0300");  // marks by their class
}

// Cutting a text where a form cannot join gives the same as taking it whole: a stable letter before and after.
TEST(Normalizer, FormsAreFixedPoints) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    const std::string text = random_text(seed, 1 + seed % 16);
    for (const Form form : {Form::nfc, Form::nfd, Form::nfkc, Form::nfkd}) {
      const std::string once = to_form(form, text);
      EXPECT_EQ(to_form(form, once), once) << seed;
      EXPECT_TRUE(!surely_in_form(form, text) || once == text) << seed;
      EXPECT_EQ(to_form(form, "x" + text), to_form(form, "x" + to_form(form, text))) << seed;
    }
    EXPECT_EQ(to_form(Form::nfc, to_form(Form::nfd, text)), to_form(Form::nfc, text)) << seed;
  }
}

TEST(Normalizer, ManyMarksTakeNoForever) {
  std::string text = "a";
  for (int i = 0; i < 50'000; ++i) text += i % 2 == 0 ? "\u0301" : "\u0316";
  EXPECT_EQ(to_form(Form::nfc, text).size(), text.size() - 1);  // á takes one of them
}

TEST(Normalizer, Others) {
  EXPECT_EQ(normalized(R"({"type": "Lowercase"})", "AÉİΣß"), "aéi\u0307σß");
  EXPECT_EQ(normalized(R"({"type": "Strip", "strip_left": true, "strip_right": false})", " \u3000a "), "a ");
  EXPECT_EQ(normalized(R"({"type": "Strip", "strip_left": false, "strip_right": true})", " a\u3000 "), " a");
  EXPECT_EQ(normalized(R"({"type": "Strip", "strip_left": true, "strip_right": true})", " \u00a0 "), "");
  EXPECT_EQ(normalized(R"({"type": "Prepend", "prepend": "▁"})", "a"), "▁a");
  EXPECT_EQ(normalized(R"({"type": "Prepend", "prepend": "▁"})", ""), "");
  EXPECT_EQ(normalized(R"({"type": "Replace", "pattern": {"String": " "}, "content": "▁"})", "a b "), "a▁b▁");
  EXPECT_EQ(normalized(R"({"type": "Replace", "pattern": {"Regex": " +"}, "content": ""})", "a  b"), "ab");
  EXPECT_EQ(normalized(R"({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "A"},
                           {"type": "Lowercase"}]})",
                       "B"),
            "ab");
}

}  // namespace
}  // namespace siamese::text
