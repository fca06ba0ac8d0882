#include "siamese/data/documents.h"

#include "tests/data/support.h"
#include <gtest/gtest.h>

namespace siamese::data {
namespace {

using Strings = std::vector<std::string>;

// The texts of a file; of a bad document "line: why".
Strings texts(const std::string& path, const DocumentOptions& options = {}) {
  Strings all;
  DocumentReader reader(path, options);
  RawDocument raw;
  while (reader.next(raw)) {
    try {
      all.push_back(text_of(raw, options.field));
    } catch (const DataError& error) {
      all.push_back(std::to_string(raw.line) + ": " + error.what());
    }
  }
  return all;
}

TEST(Documents, TextFiles) {
  const TempFolder folder;
  const auto path = folder.write("a.txt", "one\ntwo\n\nthree");
  EXPECT_EQ(texts(path), Strings{"one\ntwo\n\nthree"});
  EXPECT_EQ(texts(path, {.lines = true}), (Strings{"one", "two", "three"}));
  EXPECT_EQ(texts(folder.write("b.txt", "<end>\na\nb\n<end>\n<end>\nc<end>\n"), {.separator = "<end>"}),
            (Strings{"a\nb\n", "c<end>\n"}));
  EXPECT_EQ(texts(folder.write("c.txt", "")), Strings{});
  EXPECT_EQ(texts(folder.write("d.txt", "a\xFF")), Strings{"1: expected UTF-8 text, got byte 0xff at offset 1"});
}

TEST(Documents, JsonLines) {
  const TempFolder folder;
  const auto path = folder.write("a.jsonl",
                                 "{\"text\": \"one\\n\\u00e9\", \"id\": 1}\n"
                                 "\n"
                                 "{\"body\": \"two\"}\r\n"
                                 "not json\n"
                                 "{\"text\": 3}\n"
                                 "[\"text\"]\n"
                                 "{\"text\": \"\\ud800\"}\n"
                                 "{\"text\": \"\xFF\"}\n"
                                 "{\"text\": \"last\"}");
  const Strings found = texts(path);
  ASSERT_EQ(found.size(), 8U);
  EXPECT_EQ(found[0], "one\n\u00e9");
  EXPECT_EQ(found[1], "3: the object has no field 'text'");
  EXPECT_EQ(found[2], "4: the line: not valid JSON: 'not json'");
  EXPECT_EQ(found[3], "5: the field 'text' is no string");
  EXPECT_EQ(found[4], "6: expected a JSON object");
  EXPECT_TRUE(found[5].starts_with("7: the line: not valid JSON")) << found[5];  // half of a pair
  EXPECT_TRUE(found[6].starts_with("8: expected UTF-8")) << found[6];
  EXPECT_EQ(found[7], "last");
  EXPECT_EQ(texts(path, {.field = "body"})[1], "two");
}

TEST(Documents, TheNameTellsTheFormat) {
  const TempFolder folder;
  const std::string line = "{\"text\": \"one\"}\n";
  EXPECT_EQ(texts(folder.write("a.ndjson", line)), Strings{"one"});
  EXPECT_EQ(texts(folder.write("a.txt", line)), Strings{line});
  EXPECT_EQ(texts(folder.write("a.txt", line), {.format = DocumentFormat::jsonl}), Strings{"one"});
  EXPECT_EQ(texts(folder.write("a.jsonl", line), {.format = DocumentFormat::text}), Strings{line});
}

}  // namespace
}  // namespace siamese::data
