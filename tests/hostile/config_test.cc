// YAML, overrides of the command line, presets and scheme texts.
#include <filesystem>
#include <fstream>

#include "tests/hostile/support.h"
#include <unistd.h>

#include "siamese/base/check.h"
#include "siamese/config/load.h"
#include "siamese/config/yaml.h"
#include "siamese/residual/scheme_text.h"

namespace siamese::hostile {
namespace {

namespace fs = std::filesystem;

template <class Run>
std::string refusal(Run run) {
  try {
    run();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing was refused";
}

std::string yaml_refusal(const std::string& text) {
  expect_holds(fuzz::check_yaml, text);
  return refusal([&] { config::parse_yaml(text, "a.yaml"); });
}

std::string override_refusal(const std::string& assignment) {
  expect_holds(fuzz::check_override, assignment);
  return refusal([&] {
    config::Value root;
    config::apply_override(root, assignment);
  });
}

#define EXPECT_SAYS(words, text) EXPECT_NE((text).find(words), std::string::npos) << (text).substr(0, 300)

TEST(HostileYaml, DamagedTexts) {
  expect_holds_when_damaged(
      fuzz::check_yaml, "layers:\n  - {width: 3, name: 'a'}\ntext: \"b\\n\"\nnames: [x, \"y, z\"]\n? k\n: |\n  v\n");
}

// yaml-cpp reads an empty document before it, and again, without end.
TEST(HostileYaml, AStrayCommaIsNoEndlessText) {
  EXPECT_SAYS("one YAML document expected", yaml_refusal(","));
  EXPECT_SAYS("one YAML document expected", yaml_refusal("--- ,a\n"));
  EXPECT_SAYS("one YAML document expected", override_refusal("a=,"));
}

TEST(HostileYaml, WhatIsNoTextIsRefused) {
  EXPECT_SAYS("a.yaml: line 2: expected UTF-8 text, got byte 4", yaml_refusal("a: 1\n\x04: 2\n"));
  for (const std::string& bytes :
       {std::string("\0", 1), std::string("\x7F"), std::string("\x1B[31m"), std::string("\xFF\xFE\x61\0", 4),
        std::string("\x80"), std::string("\xC0\x80"), std::string("\xE0\x80\x80"), std::string("\xED\xA0\x80"),
        std::string("\xF4\x90\x80\x80"), std::string("\xF8\x88\x80\x80\x80"), std::string("\xE2\x82")}) {
    EXPECT_SAYS("expected UTF-8 text", yaml_refusal("a: " + bytes));
    EXPECT_SAYS("expected UTF-8 text", override_refusal("a" + bytes + "=1"));
  }
  for (const char* good : {"\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xF4\x8F\xBF\xBF", "\t", "\r"}) {
    EXPECT_EQ(config::parse_yaml(std::string("a: \"") + good + "\"", "a.yaml").find("a")->text.size() > 0, true);
  }
}

TEST(HostileYaml, NestingAndSizes) {
  for (const char* open : {"[", "{a: ", "- ", "? ", "!a ", "&a ", "a:\n "}) {
    for (const size_t times : {10, 40, 400, 600, 20'000}) expect_holds(fuzz::check_yaml, repeated(open, times));
  }
  std::string stairs;
  for (size_t i = 0; i < 600; ++i) stairs += std::string(i, ' ') + "a:\n";
  EXPECT_NE(yaml_refusal(stairs), "nothing was refused");
  EXPECT_SAYS("at most 1048576", yaml_refusal("a: " + std::string(10 << 20, 'x')));
  expect_holds(fuzz::check_yaml, "text: " + std::string(1'000'000, 'x'));
  EXPECT_LT(config::Value::scalar(std::string(1'000'000, 'x')).kind_text().size(), 300U);
  EXPECT_SAYS("a key of at most 256 bytes, got 300", yaml_refusal(std::string(300, 'k') + ": 1"));
  EXPECT_SAYS("a key of at most 256 bytes, got 5000", yaml_refusal("? " + std::string(5000, 'k') + "\n: 1"));
}

TEST(HostileYaml, ManyKeysAreRefusedBeforeEachIsLookedUp) {
  std::string keys;
  for (int i = 0; i < 100'000; ++i) keys += std::to_string(i) + ":\n";
  EXPECT_SAYS("more than 4096 keys", yaml_refusal(keys));
}

TEST(HostileYaml, AnchorsTagsAndMergeKeys) {
  EXPECT_SAYS("aliases", yaml_refusal("a: &a [*a]\n"));
  EXPECT_SAYS("aliases", yaml_refusal("a: &a {b: 1}\n<<: *a\n"));
  EXPECT_SAYS("a key must be plain text", yaml_refusal("{a: 1}: 2\n"));
  for (const char* text : {"a: &a\n",
                           "&a a: 1\n",
                           "a: !!python/object:os.system x\n",
                           "!!map {a: 1}\n",
                           "a: !<!> x\n",
                           "%YAML 9.9\n---\na: 1\n",
                           "%TAG ! tag:x,2000:\n---\n!a b\n",
                           "%%\n",
                           "<<: {a: 1}\n",
                           "a: !!binary \"AA==\"\n",
                           "a: !!int 3\n",
                           "? \n: \n",
                           "? [a]\n",
                           "a: 'b\n",
                           "a: \"b\n",
                           "a: \"\\x4\"\n",
                           "a: \"\\ud800\"\n",
                           "a: \"\\U00110000\"\n",
                           "a: \"\\q\"\n",
                           "\ta: 1\n",
                           "a:\tb\n",
                           "a: >9\n b\n",
                           "a: |-0\n",
                           "'a': 1\n\"a\": 2\n",
                           "a: @b\n",
                           "a: `b\n",
                           "- a\nb: 1\n",
                           "[a, b",
                           "[a]]",
                           "}",
                           "]",
                           ":",
                           "-",
                           "?",
                           "!",
                           "&",
                           "*",
                           "|",
                           ">",
                           "%",
                           "@",
                           "#",
                           "'",
                           "\""}) {
    expect_holds(fuzz::check_yaml, text, text);
    expect_holds(fuzz::check_override, std::string("a=") + text, text);
  }
}

TEST(HostileYaml, NumbersThatAreNone) {
  for (const char* value : {"1e999", "-1e999", "nan", ".nan", ".inf", "0x7", "1_000", "9223372036854775808", "--1",
                            "+1", "1e", "", "''", "[]", "{}", "~", "1 2", "\xD9\xA1"}) {
    for (const char* key : {"count: ", "big: ", "seed: ", "rate: ", "rates: ", "flag: "}) {
      expect_holds(fuzz::check_yaml, std::string(key) + value);
    }
  }
}

TEST(HostileOverride, Keys) {
  EXPECT_SAYS("at most 16 parts", override_refusal(repeated("a.", 60'000) + "a=1"));
  EXPECT_SAYS("at most 16 parts and 256 bytes", override_refusal(std::string(2000, 'k') + "=1"));
  EXPECT_SAYS("expected key=value", override_refusal(std::string(200'000, 'k')));
  EXPECT_LT(override_refusal(std::string(200'000, 'k')).size(), 400U);
  expect_holds_when_damaged(fuzz::check_override, "b.c={x: [1, 2]}");
}

class HostilePreset : public testing::Test {
 protected:
  HostilePreset() {
    std::string name = (fs::temp_directory_path() / "siamese_hostile_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    folder_ = name;
  }
  ~HostilePreset() override { fs::remove_all(folder_); }

  std::string refusal_of(const std::string& text) const {
    std::ofstream(folder_ / "a.yaml") << text;
    return refusal([&] { config::load((folder_ / "a.yaml").string(), {}, {folder_}); });
  }

  fs::path folder_;
};

TEST_F(HostilePreset, NamesTheSystemCannotLookUp) {
  EXPECT_SAYS("cannot read config 'nnn", refusal_of("preset: " + std::string(300, 'n')));
  EXPECT_SAYS("cannot read config 'nnn", refusal_of("preset: " + std::string(100'000, 'n')));
  EXPECT_SAYS("...': File name too long", refusal([] { config::load(std::string(300, 'n'), {}, {}); }));
  fs::create_symlink("circle", folder_ / "circle");
  EXPECT_SAYS("cannot read config 'circle': Too many levels of symbolic links", refusal_of("preset: circle"));
  EXPECT_SAYS("no config '/dev/zero'", refusal_of("preset: /dev/zero"));
  EXPECT_SAYS("no config '.'", refusal_of("preset: ."));
  EXPECT_SAYS("no config ''", refusal_of("preset: ''"));
  EXPECT_SAYS("cannot read config 'a.yaml/b': Not a directory", refusal_of("preset: a.yaml/b"));
}

TEST_F(HostilePreset, AFileLargerThanMemoryIsRefusedUnread) {
  std::ofstream(folder_ / "huge.yaml") << "a: 1\n";
  fs::resize_file(folder_ / "huge.yaml", uintmax_t{1} << 40);
  EXPECT_SAYS("expected at most 1048576", refusal_of("preset: huge"));
}

TEST(HostileScheme, Texts) {
  expect_holds_when_damaged(fuzz::check_scheme_text, "siamese(x=hybrid, input_norm=false)");
  std::string many = "hc(";
  for (int i = 0; i < 100'000; ++i) many += "k" + std::to_string(i) + "=1,";
  for (const std::string& text :
       {std::string(100'000, '('), "a" + std::string(100'000, '('), "a(" + std::string(100'000, ')'),
        repeated("a(x=", 25'000) + std::string(25'000, ')'), many + "z=1)"}) {
    expect_holds(fuzz::check_scheme_text, text);
    const std::string said = refusal([&] { residual::parse_scheme_text(text); });
    EXPECT_SAYS("bytes are too long", said);
    EXPECT_LT(said.size(), 400U);
  }
  for (const std::string& text : {std::string("a(b=\0)", 6), std::string("a\0", 2), std::string("\xC3\xA9"),
                                  std::string("a(b=\xFF)"), std::string("a(b=1)\n"), std::string("a\t(b=1)")}) {
    expect_holds(fuzz::check_scheme_text, text);
    EXPECT_THROW(residual::parse_scheme_text(text), UsageError) << excerpt(text);
  }
}

}  // namespace
}  // namespace siamese::hostile
