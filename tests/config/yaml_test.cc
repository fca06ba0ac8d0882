#include "siamese/config/yaml.h"

#include <sstream>

#include "tests/config/sample_config.h"
#include <gtest/gtest.h>

namespace siamese::config {
namespace {

using sample::usage_error;

std::string parse_error_of(const std::string& yaml) {
  return usage_error([&] { parse_yaml(yaml, "demo.yaml"); });
}

TEST(Yaml, KeepsOrderKindsAndPlaces) {
  const Value root = parse_yaml("b: 1\na:\n  - x\n  - {c: d}\nn:\n", "demo.yaml");
  EXPECT_EQ(root.keys(), (std::vector<std::string>{"b", "a", "n"}));
  EXPECT_EQ(root.find("b")->where, "demo.yaml:1");
  const Value& list = *root.find("a");
  ASSERT_EQ(list.kind, Value::Kind::list);
  EXPECT_EQ(list.items[1].find("c")->text, "d");
  EXPECT_EQ(list.items[1].find("c")->where, "demo.yaml:4");
  EXPECT_EQ(root.find("n")->kind, Value::Kind::null);
}

TEST(Yaml, NothingIsNull) {
  for (const char* text : {"", "\n\n", "# only a comment\n", "---\n"}) {
    EXPECT_EQ(parse_yaml(text, "demo.yaml").kind, Value::Kind::null) << text;
  }
}

TEST(Yaml, ADuplicateKeyIsRefused) {
  EXPECT_EQ(parse_error_of("a: 1\nb: 2\na: 3\n"), "demo.yaml:3: key 'a' is given twice");
  EXPECT_EQ(parse_error_of("m:\n  a: 1\n  a: 1\n"), "demo.yaml:3: key 'a' is given twice");
}

TEST(Yaml, AliasesAreRefusedBeforeTheyCanMultiply) {
  EXPECT_EQ(
      parse_error_of("a: &x [1]\nb: *x\n"),
      "demo.yaml:2: aliases (*name) are not supported: write the value again; a pattern of files that begins with * "
      "stands in quotes: \"*.txt\"");
  std::ostringstream bomb;
  bomb << "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    bomb << "a" << i << ": &a" << i << " [*a" << i - 1;
    for (int j = 0; j < 8; ++j) bomb << ", *a" << i - 1;
    bomb << "]\n";
  }
  EXPECT_NE(parse_error_of(bomb.str()).find("aliases"), std::string::npos);
}

TEST(Yaml, BrokenTextIsRefusedWithItsLine) {
  for (const char* text : {"a: 1\nb: [1, 2\n", "a: 1\n b: 2\n", "a: 1\n\tb: 2\n", "a: 1\n}\n"}) {
    const std::string error = parse_error_of(text);
    EXPECT_EQ(error.find("demo.yaml:"), 0U) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

TEST(Yaml, SeveralDocumentsAreRefused) {
  EXPECT_EQ(parse_error_of("a: 1\n---\nb: 2\n"), "demo.yaml: one YAML document expected, got several");
}

TEST(Yaml, AKeyThatIsNotTextIsRefused) {
  EXPECT_EQ(parse_error_of("[a, b]: 1\n"), "demo.yaml:1: a key must be plain text");
}

TEST(Yaml, AHugeFileIsRefusedUnread) {
  EXPECT_NE(parse_error_of(std::string((1 << 20) + 1, 'a')).find("expected at most 1048576"), std::string::npos);
}

TEST(Yaml, DeepNestingIsRefused) {
  const std::string error = parse_error_of(std::string(1000, '[') + std::string(1000, ']'));
  EXPECT_EQ(error.find("demo.yaml"), 0U) << error;
}

TEST(Yaml, PrintsBlocksWithListsInOneLine) {
  const std::string text =
      "model:\n  width: 64\n  residual: siamese(x=hybrid)\ntrain: [a, \"b, c\"]\nempty: []\nnone: null\n";
  EXPECT_EQ(to_yaml(parse_yaml(text, "demo.yaml")), text);
}

TEST(Yaml, PrintsNestedListsAndMapsInOneLine) {
  EXPECT_EQ(inline_yaml(parse_yaml("[[1, 2], {a: b, \"c: d\": [e]}]", "demo.yaml")), "[[1, 2], {a: b, \"c: d\": [e]}]");
}

}  // namespace
}  // namespace siamese::config
