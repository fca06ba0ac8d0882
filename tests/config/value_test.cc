#include "siamese/config/value.h"

#include "tests/config/sample_config.h"
#include <gtest/gtest.h>

#include "siamese/config/fields.h"
#include "siamese/config/yaml.h"

namespace siamese::config {
namespace {

using sample::Sample;
using sample::usage_error;

Value tree(const std::string& yaml) { return parse_yaml(yaml, "demo.yaml"); }

std::string overridden(const std::string& yaml, const std::string& assignment) {
  Value root = tree(yaml);
  apply_override(root, assignment);
  return to_yaml(root);
}

TEST(Value, MergeGoesKeyByKeyAndReplacesLists) {
  Value base = tree("a: 1\nm: {x: 1, y: 2}\nl: [1, 2, 3]\n");
  merge(base, tree("m: {y: 3, z: 4}\nl: [9]\nb: 2\n"));
  EXPECT_EQ(to_yaml(base), "a: 1\nm:\n  x: 1\n  y: 3\n  z: 4\nl: [9]\nb: 2\n");
}

TEST(Value, MergeKeepsTheSectionUnderAnEmptyOne) {
  Value base = tree("m: {x: 1}\ns: 2\n");
  merge(base, tree("m:\ns:\n"));
  EXPECT_EQ(to_yaml(base), "m:\n  x: 1\ns: null\n");
}

TEST(Value, EraseAndFind) {
  Value root = tree("a: 1\nb: 2\n");
  EXPECT_TRUE(root.erase("a"));
  EXPECT_FALSE(root.erase("a"));
  EXPECT_EQ(root.find("a"), nullptr);
  EXPECT_EQ(root.find("b")->text, "2");
}

TEST(Override, SetsNestedKeysAndMakesMapsOnTheWay) {
  EXPECT_EQ(overridden("m: {x: 1, y: 2}", "m.x=5"), "m:\n  x: 5\n  y: 2\n");
  EXPECT_EQ(overridden("a: 1", "m.n.x=5"), "a: 1\nm:\n  n:\n    x: 5\n");
  EXPECT_EQ(overridden("m:", "m.x=5"), "m:\n  x: 5\n");
}

TEST(Override, TheValueIsYaml) {
  EXPECT_EQ(overridden("", "l=[1, 2]"), "l: [1, 2]\n");
  EXPECT_EQ(overridden("", "m={a: 1}"), "m:\n  a: 1\n");
  EXPECT_EQ(overridden("", "t=\"[x]\""), "t: \"[x]\"\n");
  EXPECT_EQ(overridden("", "r=siamese(x=hybrid)"), "r: siamese(x=hybrid)\n");
  EXPECT_EQ(overridden("", "e="), "e: null\n");
}

TEST(Override, AWrongValueIsBlamedOnTheCommandLine) {
  Value root = tree("rate: 1");
  apply_override(root, "layer.width=wide");
  Sample sample;
  EXPECT_EQ(usage_error([&] { read(root, "", sample); }),
            "command line: layer.width: expected a whole number, got 'wide'");
  Value unknown = tree("rate: 1");
  apply_override(unknown, "layer.widht=3");
  EXPECT_EQ(usage_error([&] { read(unknown, "", sample); }),
            "command line: layer.widht: unknown key (did you mean 'layer.width'?)");
}

TEST(Override, MalformedOnesAreRefused) {
  const auto error = [](const std::string& assignment) { return usage_error([&] { overridden("", assignment); }); };
  EXPECT_EQ(error("rate"), "override 'rate': expected key=value, for example optim.lr=2e-3");
  EXPECT_EQ(error("=3"), "override '=3': expected key=value, for example optim.lr=2e-3");
  for (const char* assignment : {".a=1", "a.=1", "a..b=1", ".=1"}) {
    EXPECT_EQ(error(assignment), "override with an empty key part: expected a.b=value") << assignment;
  }
  EXPECT_EQ(error("a=[1").find("command line: not valid YAML"), 0U) << error("a=[1");
}

TEST(Value, FlattenListsEveryLeaf) {
  const auto leaves = flatten(tree("a: 1\nm: {x: 2, n: {y: [3, 4]}}\n"));
  const std::vector<std::pair<std::string, std::string>> expected = {{"a", "1"}, {"m.x", "2"}, {"m.n.y", "[3, 4]"}};
  EXPECT_EQ(leaves, expected);
}

}  // namespace
}  // namespace siamese::config
