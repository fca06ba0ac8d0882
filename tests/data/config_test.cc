#include "siamese/data/config.h"

#include "tests/data/support.h"
#include <gtest/gtest.h>

#include "siamese/config/fields.h"
#include "siamese/config/yaml.h"

namespace siamese::data {
namespace {

template <class Change>
std::string check_error(Change change) {
  DataConfig config;
  change(config);
  return error_of<UsageError>([&] { check(config); });
}

TEST(DataConfig, PrintsAndReadsBack) {
  DataConfig config;
  config.source = Source::tokens;
  config.train = {"a.bin", "shards/*.bin"};
  config.format = io::TokenFormat::npy;
  config.operations = "*";
  config.loss = LossOn::all;
  config.reverse = true;
  const std::string text = config::to_yaml(config::print(config));
  DataConfig again;
  config::read(config::parse_yaml(text, "demo.yaml"), "data", again);
  EXPECT_EQ(config::to_yaml(config::print(again)), text);
  EXPECT_EQ(again.train, config.train);
  EXPECT_EQ(again.operations, "*");
}

TEST(DataConfig, EveryKeyHasAHelpText) {
  for (const auto& doc : config::describe<DataConfig>()) EXPECT_GT(doc.help.size(), 10U) << doc.path;
}

TEST(DataConfig, TheDefaultIsValid) { EXPECT_NO_THROW(check(DataConfig{})); }

TEST(DataConfig, ValuesOutOfRangeAreNamed) {
  EXPECT_EQ(check_error([](auto& c) { c.digits = 0; }), "data.digits: expected 1 to 4, got 0");
  EXPECT_EQ(check_error([](auto& c) { c.digits = 5; }), "data.digits: expected 1 to 4, got 5");
  EXPECT_EQ(check_error([](auto& c) { c.operations = ""; }), "data.operations: expected some of + - *, got nothing");
  EXPECT_EQ(check_error([](auto& c) { c.operations = "+/"; }),
            "data.operations: expected some of + - *, each once, got '+/'");
  EXPECT_EQ(check_error([](auto& c) { c.operations = "+-+"; }),
            "data.operations: expected some of + - *, each once, got '+-+'");
  for (const double fraction : {0.0, 1.0, -0.1}) {
    EXPECT_EQ(check_error([&](auto& c) { c.test_fraction = fraction; }).find("data.test_fraction: expected a share"),
              0U);
  }
  const auto text = [](DataConfig& c) {
    c.source = Source::text;
    c.train = {"a.txt"};
  };
  EXPECT_EQ(check_error(text), "nothing thrown");
  EXPECT_EQ(check_error([&](auto& c) { text(c), c.train.clear(); }),
            "data.train: expected files for data.source=text, got none");
  for (const double fraction : {1.0, -0.1}) {
    EXPECT_EQ(check_error([&](auto& c) { text(c), c.val_fraction = fraction; }).find("data.val_fraction: expected"),
              0U);
  }
}

}  // namespace
}  // namespace siamese::data
