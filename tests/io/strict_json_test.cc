#include "siamese/io/strict_json.h"

#include <string>

#include "tests/io/support.h"
#include <nlohmann/json.hpp>

namespace siamese::io {
namespace {

std::string nested(const std::string& open, const std::string& close, size_t times) {
  std::string text;
  for (size_t i = 0; i < times; ++i) text += open;
  text += "1";
  for (size_t i = 0; i < times; ++i) text += close;
  return text;
}

TEST(StrictJson, WhatIsDeepIsRefusedBeforeItIsBuilt) {
  for (const size_t times : {33U, 1000U, 200'000U}) {
    expect_error<DataError>([&] { read_json(nested("[", "]", times), "f.json"); }, {"f.json", "at most 32 deep"});
    expect_error<DataError>([&] { read_ordered_json(nested("{\"a\":", "}", times), "f.json"); },
                            {"f.json", "at most 32 deep"});
  }
  EXPECT_EQ(read_json(nested("[", "]", 32), "f.json").size(), 1U);
  EXPECT_EQ(read_json(nested("{\"a\":", "}", 3), "f.json", 3).size(), 1U);
  expect_error<DataError>([&] { read_json(nested("[", "]", 4), "f.json", 3); }, {"at most 3 deep"});
}

TEST(StrictJson, WhatIsNotOneValueIsRefused) {
  expect_error<DataError>([&] { read_json("{\"a\":1,\"a\":2}", "f.json"); }, {"f.json", "'a' stands twice"});
  expect_error<DataError>([&] { read_json(std::string_view("{}\0", 3), "f.json"); }, {"f.json", "a NUL"});
  for (const char* const text : {"", "{", "{}{}", "[1,]", "nan", "{\"a\":1e999}", "\"\xff\""}) {
    expect_error<DataError>([&] { read_json(text, "f.json"); }, {"f.json: not valid JSON"});
  }
}

TEST(StrictJson, KeysInOrderAreNotMany) {
  std::string text = "{\"k0\":0";
  for (int i = 1; i < 5000; ++i) text += ",\"k" + std::to_string(i) + "\":" + std::to_string(i);
  text += "}";
  expect_error<DataError>([&] { read_ordered_json(text, "f.json"); }, {"f.json", "at most 4096 keys"});
  EXPECT_EQ(read_json(text, "f.json").size(), 5000U);
}

TEST(StrictJson, ANameThatIsNotUtf8IsWrittenAllTheSame) {
  const nlohmann::ordered_json value = {{"file", "a\xff/b"}, {"good", "größer"}};
  EXPECT_EQ(json_text(value), "{\"file\":\"a\xEF\xBF\xBD/b\",\"good\":\"größer\"}");
  EXPECT_EQ(json_text(nlohmann::json("\xc3")), "\"\xEF\xBF\xBD\"");
  EXPECT_EQ(read_json(json_text(value, 2), "again")["good"], "größer");
}

}  // namespace
}  // namespace siamese::io
