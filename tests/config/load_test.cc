#include "siamese/config/load.h"

#include <fstream>

#include "tests/config/sample_config.h"
#include <gtest/gtest.h>
#include <unistd.h>

#include "siamese/config/fields.h"
#include "siamese/config/yaml.h"

namespace siamese::config {
namespace {

namespace fs = std::filesystem;
using sample::Sample;
using sample::usage_error;

class Load : public testing::Test {
 protected:
  Load() : folder_(fs::temp_directory_path() / ("siamese_load_" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "recipes" / "tiny");
    fs::create_directories(folder_ / "mine");
  }
  ~Load() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  std::vector<fs::path> recipes() const { return {folder_ / "recipes"}; }
  std::string loaded(const std::string& name, const std::vector<std::string>& overrides = {}) const {
    return to_yaml(load(name, overrides, recipes()));
  }
  std::string error_of(const std::string& name) const {
    return usage_error([&] { loaded(name); });
  }

  fs::path folder_;
};

TEST_F(Load, PresetThenFileThenCommandLine) {
  write("recipes/base.yaml", "a: preset\nb: preset\nc: preset\nm: {x: preset, y: preset, z: preset}\n");
  const auto file = write("mine/run.yaml", "preset: base\nb: file\nc: file\nm: {y: file, z: file}\n");
  EXPECT_EQ(loaded(file, {"c=command", "m.z=command"}),
            "a: preset\nb: file\nc: command\nm:\n  x: preset\n  y: file\n  z: command\n");
}

TEST_F(Load, TheLastOverrideWins) {
  const auto file = write("mine/run.yaml", "a: 1\n");
  EXPECT_EQ(loaded(file, {"a=2", "a=3"}), "a: 3\n");
}

TEST_F(Load, PresetsChain) {
  write("recipes/first.yaml", "a: 1\nb: 1\nc: 1\n");
  write("recipes/second.yaml", "preset: first\nb: 2\nc: 2\n");
  write("recipes/third.yaml", "preset: second\nc: 3\n");
  EXPECT_EQ(loaded("third"), "a: 1\nb: 2\nc: 3\n");
}

TEST_F(Load, APresetBesideTheFileComesFirst) {
  write("recipes/base.yaml", "a: recipe\n");
  write("mine/base.yaml", "a: beside\n");
  EXPECT_EQ(loaded(write("mine/run.yaml", "preset: base\n")), "a: beside\n");
  EXPECT_EQ(loaded(write("run.yaml", "preset: base\n")), "a: recipe\n");
}

TEST_F(Load, APresetBesideTheFileComesBeforeOneInTheWorkingFolder) {
  write("base.yaml", "a: working folder\n");
  write("mine/base.yaml", "a: beside\n");
  const auto file = write("mine/run.yaml", "preset: base.yaml\n");
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  const std::string text = loaded(file);
  fs::current_path(before);
  EXPECT_EQ(text, "a: beside\n");
}

TEST_F(Load, AnEmptySectionKeepsThePresets) {
  write("recipes/base.yaml", "m: {x: 1}\n");
  EXPECT_EQ(loaded(write("mine/run.yaml", "preset: base\nm:\n")), "m:\n  x: 1\n");
}

TEST_F(Load, ACircleOfPresetsIsRefused) {
  write("recipes/one.yaml", "preset: two\n");
  write("recipes/two.yaml", "preset: one\n");
  EXPECT_NE(error_of("one").find("presets refer to each other in a circle"), std::string::npos);
  const auto self = write("recipes/self.yaml", "preset: self\n");
  EXPECT_EQ(error_of("self"), self + ": presets refer to each other in a circle");
}

TEST_F(Load, APresetMustBeAName) {
  const auto file = write("mine/run.yaml", "a: 1\npreset: [x]\n");
  EXPECT_EQ(error_of(file), file + ":2: preset: expected a name");
}

TEST_F(Load, AMissingConfigNamesTheNearestRecipe) {
  write("recipes/demo.yaml", "a: 1\n");
  write("recipes/tiny/moe.yaml", "a: 2\n");
  EXPECT_EQ(error_of("dmeo"), "no config 'dmeo': expected a YAML file or the name of a recipe (did you mean 'demo'?)");
  EXPECT_EQ(list_configs(recipes()), (std::vector<std::string>{"demo", "tiny/moe"}));
  EXPECT_EQ(loaded("tiny/moe"), "a: 2\n");
  EXPECT_EQ(find_config("demo", recipes()), folder_ / "recipes" / "demo.yaml");
}

TEST_F(Load, APublishedRecipeIsCalledWithoutItsFolder) {
  fs::create_directories(folder_ / "recipes" / "published" / "dit");
  write("recipes/published/large.yaml", "a: 1\n");
  write("recipes/published/dit/2.yaml", "preset: large\nb: 2\n");
  EXPECT_EQ(loaded("large"), "a: 1\n");
  EXPECT_EQ(loaded("published/large"), "a: 1\n");
  EXPECT_EQ(loaded("dit/2"), "a: 1\nb: 2\n");  // the preset is found by name, too
  EXPECT_EQ(list_configs(recipes()), (std::vector<std::string>{"dit/2", "large"}));
  EXPECT_EQ(error_of("lagre"),
            "no config 'lagre': expected a YAML file or the name of a recipe (did you mean 'large'?)");
  write("recipes/large.yaml", "a: 3\n");
  EXPECT_EQ(loaded("large"), "a: 3\n");
}

TEST_F(Load, AnEmptyFileIsAllDefaults) {
  const Value value = load(write("mine/run.yaml", ""), {"count=4"}, recipes());
  Sample sample;
  read(value, "", sample);
  Sample expected;
  expected.count = 4;
  EXPECT_EQ(sample, expected);
}

TEST_F(Load, AFileThatIsNotAMapIsRefused) {
  const auto list = write("mine/list.yaml", "- a\n- b\n");
  EXPECT_EQ(error_of(list), list + ": expected a map of keys, got a list");
  const auto text = write("mine/text.yaml", "hello\n");
  EXPECT_EQ(error_of(text), text + ": expected a map of keys, got 'hello'");
}

TEST_F(Load, AnErrorInAPresetNamesThePresetsFile) {
  const auto base = write("recipes/base.yaml", "count: 1\nlayer:\n  width: x\n");
  const Value value = load(write("mine/run.yaml", "preset: base\nlayer: {name: n}\n"), {}, recipes());
  Sample sample;
  EXPECT_EQ(usage_error([&] { read(value, "", sample); }), base + ":3: layer.width: expected a whole number, got 'x'");
}

}  // namespace
}  // namespace siamese::config
