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
  config.limit = 12;
  config.normalize = Normalize::imagenet;
  config.augment.crop = Crop::resized;
  config.augment.switch_ = 0.25;
  const std::string text = config::to_yaml(config::print(config));
  DataConfig again;
  config::read(config::parse_yaml(text, "demo.yaml"), "data", again);
  EXPECT_EQ(config::to_yaml(config::print(again)), text);
  EXPECT_EQ(again.train, config.train);
  EXPECT_EQ(again.operations, "*");
  EXPECT_EQ(again.augment.crop, Crop::resized);
  EXPECT_EQ(again.augment.switch_, 0.25);
}

TEST(DataConfig, EveryKeyHasAHelpText) {
  for (const auto& doc : config::describe<DataConfig>()) EXPECT_GT(doc.help.size(), 10U) << doc.path;
}

TEST(DataConfig, TheDefaultIsValid) { EXPECT_NO_THROW(check(DataConfig{})); }

TEST(DataConfig, FilesThatWouldTellTheClassesAreNamedWhenTheyAreNotThere) {
  const TempFolder folder;
  DataConfig config;
  EXPECT_NO_THROW(check_told_classes(config));
  config.source = Source::cifar;
  config.train = {"no-such-folder"};
  EXPECT_EQ(error_of<DataError>([&] {
              check_told_classes(config);
            }).find("data.train: expected a folder, got nothing: no 'no-such-folder', looked for in "),
            0U);
  folder.write("set/readme.txt", "none");
  config.train = {folder / "set"};
  EXPECT_EQ(error_of<DataError>([&] { check_told_classes(config); }),
            "data.train: expected a folder with data_batch_*.bin (CIFAR-10) or train.bin (CIFAR-100) in it, got '" +
                folder / "set" + "'");
  folder.write("set/test_batch.bin", "");  // enough to tell
  EXPECT_NO_THROW(check_told_classes(config));
}

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

TEST(DataConfig, ValuesAreCheckedWhateverTheSource) {
  const std::pair<const char*, void (*)(DataConfig&)> changes[] = {
      {"digits", [](DataConfig& c) { c.digits = 9; }},
      {"operations", [](DataConfig& c) { c.operations = "/"; }},
      {"test_fraction", [](DataConfig& c) { c.test_fraction = 2; }},
      {"val_fraction", [](DataConfig& c) { c.val_fraction = -1; }},
      {"limit", [](DataConfig& c) { c.limit = -1; }},
      {"augment.erase", [](DataConfig& c) { c.augment.erase = 2; }}};
  for (const auto& [source, name] : EnumText<Source>::names) {
    for (const auto& [key, change] : changes) {
      const std::string error = check_error([&, source = source, change = change](auto& c) {
        c.source = source;
        c.train = {"somewhere"};
        change(c);
      });
      EXPECT_EQ(error.find("data." + std::string(key) + ": expected "), 0U) << name << ", " << key << ": " << error;
    }
  }
}

TEST(DataConfig, AugmentValuesOutOfRangeAreNamed) {
  const auto error = [](auto change) {
    return check_error([&](auto& c) {
      c.source = Source::shapes;
      change(c.augment);
    });
  };
  EXPECT_EQ(error([](auto&) {}), "nothing thrown");
  EXPECT_EQ(error([](auto& a) { a.erase = 1.5; }), "data.augment.erase: expected 0 to 1, got 1.5");
  EXPECT_EQ(error([](auto& a) { a.operations = -1; }), "data.augment.operations: expected 0 to 16, got -1");
  EXPECT_EQ(error([](auto& a) { a.magnitude = 11; }), "data.augment.magnitude: expected 0 to 10, got 11");
  EXPECT_EQ(error([](auto& a) { a.magnitude_std = -1; }), "data.augment.magnitude_std: expected 0 to 10, got -1");
  EXPECT_EQ(error([](auto& a) { a.mixup = -1; }), "data.augment.mixup: expected 0 to 100, got -1");
  EXPECT_EQ(error([](auto& a) { a.cutmix = 101; }), "data.augment.cutmix: expected 0 to 100, got 101");
  EXPECT_EQ(error([](auto& a) { a.mix = 2; }), "data.augment.mix: expected 0 to 1, got 2");
  EXPECT_EQ(error([](auto& a) { a.switch_ = -0.5; }), "data.augment.switch: expected 0 to 1, got -0.5");
  EXPECT_EQ(error([](auto& a) { a.smoothing = 1; }),
            "data.augment.smoothing: expected a share from 0 to below 1, got 1");
  EXPECT_EQ(error([](auto& a) { a.repeats = 0; }), "data.augment.repeats: expected 1 to 1000, got 0");
  EXPECT_EQ(check_error([](auto& c) { c.limit = -1; }),
            "data.limit: expected a number from 0 to 1099511627776, got -1");
  EXPECT_EQ(check_error([](auto& c) {
              c.source = Source::idx;
              c.train = {"a", "b"};
            }),
            "data.train: expected one folder for data.source=idx, got 2");
}

TEST(DataConfig, SizesAreWhatTheConfigTells) {
  const auto sizes = [](Source source) {
    DataConfig config;
    config.source = source;
    return sizes_of(config);
  };
  EXPECT_EQ(sizes(Source::arithmetic).vocab, 16);
  EXPECT_EQ(sizes(Source::text).vocab, 256);
  EXPECT_EQ(sizes(Source::tokens).vocab, 0);
  EXPECT_FALSE(sizes(Source::random).images);
  EXPECT_EQ(sizes(Source::idx).classes, 10);
  EXPECT_EQ(sizes(Source::idx).channels, 1);
  EXPECT_EQ(sizes(Source::cifar).channels, 3);
  EXPECT_TRUE(sizes(Source::folder).images);
  EXPECT_EQ(sizes(Source::latents).classes, 0);
}

}  // namespace
}  // namespace siamese::data
