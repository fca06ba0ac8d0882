#include "siamese/config/fields.h"

#include <limits>

#include "tests/config/sample_config.h"
#include <gtest/gtest.h>

#include "siamese/config/yaml.h"

namespace siamese::config {
namespace {

using sample::Layer;
using sample::Sample;
using sample::Shade;
using sample::usage_error;

Sample read_text(const std::string& yaml) {
  Sample sample;
  read(parse_yaml(yaml, "demo.yaml"), "", sample);
  return sample;
}

std::string error_of(const std::string& yaml) {
  return usage_error([&] { read_text(yaml); });
}

TEST(Fields, EveryTypeReadsBackFromItsPrintedText) {
  Sample sample;
  sample.flag = true;
  sample.count = std::numeric_limits<int>::min();
  sample.big = std::numeric_limits<int64_t>::max();
  sample.seed = std::numeric_limits<uint64_t>::max();
  sample.rate = 0.1;
  sample.text = "two words";
  sample.shade = Shade::dark;
  sample.names = {};
  sample.rates = {1e-300, -0.0, 3, 1.0 / 3.0};
  sample.shades = {Shade::dark, Shade::light};
  sample.layers = {{1, "x, y"}, {2, "{z}"}};
  sample.layer = {7, "inner: one"};
  const std::string text = to_yaml(print(sample));
  EXPECT_EQ(read_text(text), sample) << text;
  EXPECT_EQ(read_text(to_yaml(print(Sample{}))), Sample{});
}

TEST(Fields, TrickyStringsReadBackAloneAndInALists) {
  const std::vector<std::string> tricky = {
      "",
      " ",
      " lead",
      "trail ",
      "~",
      "null",
      "Null",
      "true",
      "no",
      "12",
      "1e-3",
      "-",
      "--",
      "---",
      "- x",
      "-x",
      "...",
      "?",
      "? x",
      ":",
      ": x",
      "x:",
      "a: b",
      "a:b",
      "#",
      "# no",
      "a #b",
      "a#b",
      "[x]",
      "[",
      "]",
      "{",
      "{a: b}",
      "}",
      ",",
      "a,b",
      "a, b",
      "&x",
      "*x",
      "!x",
      "|",
      ">",
      "'",
      "''",
      "\"",
      "it's",
      "say \"hi\"",
      "%x",
      "@x",
      "`x",
      "\\",
      "\\n",
      "a\\",
      "a\nb",
      "\n",
      "a\n",
      "\t",
      "a\tb",
      "a\t",
      "\r",
      "a\r\nb",
      std::string("a\0b", 3),
      "\x01\x1f\x7f",
      "=",
      "<<",
      "<",
      "siamese(x=hybrid)",
      "mixln(post=0.5)",
      "+-*",
      "*",
      "C:\\data",
      "~/runs",
      "größe",
      "日本語",
      "\xC2\x85",
      "\xE2\x80\xA8",
      "data/*.bin",
      "a[0]",
      "a]b",
      "a}b",
      "key: [",
      "0x10",
      "1:30",
      "2026-01-01",
      "!!str",
      "a\n b\n  c",
      "x\n\n\ny",
  };
  for (const auto& text : tricky) {
    Sample sample;
    sample.text = text;
    sample.names = {text, "mid", text};
    sample.layers = {{1, text}};
    sample.layer.name = text;
    const std::string yaml = to_yaml(print(sample));
    EXPECT_EQ(read_text(yaml), sample) << "text '" << text << "' printed as:\n" << yaml;
  }
}

TEST(Fields, DoublesKeepEveryBitAndPrintShort) {
  for (const double value : {0.0, 1.0, -1.0, 0.1, 1e-3, 2e-3, 1e22, 1e23, 123456789.123456789, 5e-324,
                             1.7976931348623157e308, 3.141592653589793, -2.2250738585072014e-308}) {
    Sample sample;
    sample.rate = value;
    EXPECT_EQ(read_text(to_yaml(print(sample))).rate, value);
  }
  EXPECT_EQ(print(0.1).text, "0.1");
  EXPECT_EQ(print(2e-3).text, "0.002");
}

TEST(Fields, MissingKeysKeepTheirDefaults) {
  EXPECT_EQ(read_text(""), Sample{});
  EXPECT_EQ(read_text("layer:\n"), Sample{});
  EXPECT_EQ(read_text("layer:\n  width: 5\n").layer, (Layer{5, "plain"}));
}

TEST(Fields, ASingleItemMayStandWithoutBrackets) {
  EXPECT_EQ(read_text("names: x").names, std::vector<std::string>{"x"});
  EXPECT_EQ(read_text("names: []").names, std::vector<std::string>{});
  EXPECT_EQ(read_text("names:\n  - x\n  - y\n").names, (std::vector<std::string>{"x", "y"}));
}

TEST(Fields, SwitchesTakeTheUsualWords) {
  for (const char* word : {"true", "yes", "on"}) EXPECT_TRUE(read_text(std::string("flag: ") + word).flag);
  for (const char* word : {"false", "no", "off"}) EXPECT_FALSE(read_text(std::string("flag: ") + word).flag);
}

TEST(Fields, AnUnknownKeyNamesPlaceAndNearestMatch) {
  EXPECT_EQ(error_of("flag: true\nraet: 2\n"), "demo.yaml:2: raet: unknown key (did you mean 'rate'?)");
  EXPECT_EQ(error_of("layer:\n  widht: 2\n"), "demo.yaml:2: layer.widht: unknown key (did you mean 'layer.width'?)");
  EXPECT_EQ(error_of("\n\ntemperature: 2\n"), "demo.yaml:3: temperature: unknown key");
  EXPECT_EQ(error_of("width: 2\n"), "demo.yaml:1: width: unknown key (did you mean 'layer.width'?)");
  EXPECT_EQ(error_of("layer.width: 2\n"),
            "demo.yaml:1: layer.width: unknown key (in a file a section is a map: 'layer: {width: ...}')");
}

TEST(Fields, WhatFollowsACommaOfASchemeWithoutQuotesIsNoKey) {
  const std::string hint = ": unknown key (a comma inside { } ends the value: put the scheme in quotes)";
  EXPECT_EQ(error_of("{text: siamese(x=hybrid, input_norm=false)}"), "demo.yaml:1: input_norm=false)" + hint);
  EXPECT_EQ(error_of("{text: siamese(a=1, b=2, c=3)}"), "demo.yaml:1: b=2" + hint);
  EXPECT_EQ(error_of("layer: {name: siamese(a=1, gain=0.5)}"), "demo.yaml:1: layer.gain=0.5)" + hint);
  EXPECT_EQ(error_of("{text: siamese(a=1), raet: 2}"), "demo.yaml:1: raet: unknown key (did you mean 'rate'?)");
  EXPECT_EQ(error_of("{f(x): 2}"), "demo.yaml:1: f(x): unknown key");
  EXPECT_EQ(error_of("{text: siamese(a=1, b=2), raet: 2}").find("demo.yaml:1: b=2)" + hint), 0U);
}

TEST(Fields, AKeyThatIsWrittenAloneIsProposedSo) {
  const auto message = [](Written written) {
    return sample::usage_error([&] {
      sample::Layer layer;
      read(parse_yaml("widht: 2", ""), "scheme", layer, written);
    });
  };
  EXPECT_NE(message(Written::alone).find("scheme.widht: unknown key (did you mean 'width'?)"), std::string::npos);
  EXPECT_NE(message(Written::behind_section).find("(did you mean 'scheme.width'?)"), std::string::npos);
}

struct Outer {
  Sample sample;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("sample", self.sample, "");
  }
};

TEST(Fields, AMistypedSectionIsToldWithItsKey) {
  EXPECT_EQ(error_of("laier: {width: 2}"), "demo.yaml:1: laier.width: unknown key (did you mean 'layer.width'?)");
  EXPECT_EQ(error_of("laier: {widht: 2}"), "demo.yaml:1: laier.widht: unknown key (did you mean 'layer.width'?)");
  EXPECT_EQ(error_of("laier: {width: 2, name: x}"), "demo.yaml:1: laier: unknown key (did you mean 'layer'?)");
  EXPECT_EQ(error_of("laier: {temperature: 2}"), "demo.yaml:1: laier: unknown key (did you mean 'layer'?)");
  EXPECT_EQ(error_of("laier: {}"), "demo.yaml:1: laier: unknown key (did you mean 'layer'?)");
}

TEST(Fields, AKeyOfAnInnerSectionIsProposedWhole) {
  const std::string message = sample::usage_error([] {
    Outer outer;
    read(parse_yaml("sample: {width: 2}", "demo.yaml"), "", outer);
  });
  EXPECT_EQ(message, "demo.yaml:1: sample.width: unknown key (did you mean 'sample.layer.width'?)");
}

TEST(Fields, AWrongTypeNamesPlaceKeyExpectedAndGot) {
  EXPECT_EQ(error_of("flag: maybe"), "demo.yaml:1: flag: expected true or false, got 'maybe'");
  EXPECT_EQ(error_of("flag: [true]"), "demo.yaml:1: flag: expected true or false, got a list");
  EXPECT_EQ(error_of("count: 1.5"), "demo.yaml:1: count: expected a whole number, got '1.5'");
  EXPECT_EQ(error_of("count: 3000000000"), "demo.yaml:1: count: expected a whole number, got '3000000000'");
  EXPECT_EQ(error_of("count:"), "demo.yaml:1: count: expected a whole number, got nothing");
  EXPECT_EQ(error_of("seed: -1"), "demo.yaml:1: seed: expected a whole number >= 0, got '-1'");
  EXPECT_EQ(error_of("rate: fast"), "demo.yaml:1: rate: expected a number, got 'fast'");
  EXPECT_EQ(error_of("rate: nan"), "demo.yaml:1: rate: expected a number, got 'nan'");
  EXPECT_EQ(error_of("rate: inf"), "demo.yaml:1: rate: expected a number, got 'inf'");
  EXPECT_EQ(error_of("rate: 1e999"), "demo.yaml:1: rate: expected a number, got '1e999'");
  EXPECT_EQ(error_of("rate: 1e-3x"), "demo.yaml:1: rate: expected a number, got '1e-3x'");
  EXPECT_EQ(error_of("text: [a]"), "demo.yaml:1: text: expected text, got a list");
  EXPECT_EQ(error_of("text: {a: b}"), "demo.yaml:1: text: expected text, got a map");
  EXPECT_EQ(error_of("shade: drak"),
            "demo.yaml:1: shade: expected one of light, dark (did you mean 'dark'?), got 'drak'");
  EXPECT_EQ(error_of("names: {a: b}"), "demo.yaml:1: names: expected a list, got a map");
  EXPECT_EQ(error_of("rates:\n  - 1\n  - x\n"), "demo.yaml:3: rates[1]: expected a number, got 'x'");
  EXPECT_EQ(error_of("layers:\n  - width: x\n"), "demo.yaml:2: layers[0].width: expected a whole number, got 'x'");
  EXPECT_EQ(error_of("layer: 5"), "demo.yaml:1: layer: expected a map of keys, got '5'");
}

TEST(Fields, TheKeyReferenceListsEveryLeafWithDefaultAndHelp) {
  const auto docs = describe<Sample>();
  ASSERT_EQ(docs.size(), 13U);
  EXPECT_EQ(docs[0].path, "flag");
  EXPECT_EQ(docs[0].fallback, "false");
  EXPECT_EQ(docs[0].help, "a switch");
  EXPECT_EQ(docs[4].fallback, "0.001");
  EXPECT_EQ(docs[6].help, "how dark: light | dark");
  EXPECT_EQ(docs[7].fallback, "[a, b]");
  EXPECT_EQ(docs[11].path, "layer.width");
  EXPECT_EQ(docs[12].path, "layer.name");
}

}  // namespace
}  // namespace siamese::config
