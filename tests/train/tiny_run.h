// A run that takes a second, in a folder that goes away.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "siamese/base/check.h"
#include "siamese/config/fields.h"
#include "siamese/config/value.h"
#include "siamese/io/aside.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/json_lines.h"
#include "siamese/train/run.h"

namespace siamese::train {

class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& name)
      : path_(std::filesystem::temp_directory_path() / ("siamese_" + name + "_" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

struct Heard : Observer {
  void warned(const std::string& message) override { warnings.push_back(message); }
  std::vector<std::string> warnings;
};

inline config::Value tree_of(const std::vector<std::string>& assignments, int layer) {
  config::Value value = config::Value::map();
  for (const auto& assignment : assignments) config::apply_override(value, assignment);
  return config::in_layer(std::move(value), layer);
}

// `recipe`: what a file would say whose preset is the tiny run.
inline RunConfig tiny_config(const std::vector<std::string>& overrides = {},
                             const std::vector<std::string>& recipe = {}) {
  config::Value value =
      tree_of({"model.width=16", "model.blocks=2", "model.heads=2", "model.context=24", "data.digits=1",
               "train.steps=12", "train.batch=4", "train.eval_every=5", "eval.held_out=4", "train.checkpoint_every=4",
               "eval.problems=3", "train.record_every=6", "engine.threads=1"},
              config::kFileLayer - 1);
  config::merge(value, tree_of(recipe, config::kFileLayer));
  for (const auto& assignment : overrides) config::apply_override(value, assignment);
  return read_config(value);
}

inline const std::vector<std::string>& other_families() {
  static const std::vector<std::string> families = {"moe", "vit", "dit"};
  return families;
}

// A run of moe, vit or dit with everything that is the family's own switched on.
inline RunConfig tiny_family(const std::string& family, const std::vector<std::string>& overrides = {}) {
  std::vector<std::string> all = {"model.family=" + family, "train.ema=0.9", "optim.lr=5e-3"};
  const auto add = [&](const std::vector<std::string>& more) { all.insert(all.end(), more.begin(), more.end()); };
  if (family == "moe") {
    add({"model.ffn_width=16", "model.experts=4", "model.experts_per_token=2", "model.shared_width=8"});
  } else {
    add({"data.source=shapes", "model.image=16", "model.patch=4", "model.norm=layer", "model.norm_eps=1e-6",
         "model.bias=true"});
  }
  if (family == "vit") {
    add({"model.ffn=gelu", "model.drop_path=0.4", "data.augment.flip=true", "data.augment.crop=shift",
         "data.augment.erase=0.5", "data.augment.operations=1", "data.augment.mixup=0.8", "data.augment.cutmix=1",
         "data.augment.smoothing=0.1"});
  }
  if (family == "dit") {
    add({"model.ffn=gelu_tanh", "init.rule=xavier", "model.label_dropout=0.3", "eval.averaged=true", "eval.samples=4",
         "eval.sampler_steps=3"});
  }
  return tiny_config(overrides, all);
}

// metrics.jsonl without what the clock decides.
inline std::vector<nlohmann::json> timeless_lines(const std::filesystem::path& path) {
  std::vector<nlohmann::json> lines;
  for (const auto& line : io::read_json_lines(path)) {
    auto json = nlohmann::json::parse(line);
    json.erase("step_ms");
    json.erase("tokens_per_s");
    json.erase("samples_per_s");
    json.erase("checksum");  // of the clock, too
    lines.push_back(json);
  }
  return lines;
}

inline void expect_same_runs(const std::filesystem::path& a, const std::filesystem::path& b, int64_t step) {
  EXPECT_EQ(timeless_lines(a / "metrics.jsonl"), timeless_lines(b / "metrics.jsonl"));
  EXPECT_EQ(timeless_lines(a / "eval.jsonl"), timeless_lines(b / "eval.jsonl"));
  const std::string folder = "step" + std::to_string(step);
  for (const char* const file : {"model.safetensors", "optim.safetensors", "trainer.json"}) {
    EXPECT_EQ(io::read_file(a / folder / file), io::read_file(b / folder / file)) << file;
  }
  const auto same_if_there = [&](const std::filesystem::path& file) {
    ASSERT_EQ(std::filesystem::exists(a / file), std::filesystem::exists(b / file)) << file;
    if (!std::filesystem::exists(a / file)) return;
    EXPECT_EQ(io::read_file(a / file), io::read_file(b / file)) << file;
  };
  same_if_there(std::filesystem::path(folder) / "ema.safetensors");
  for (const auto& line : timeless_lines(a / "eval.jsonl")) {
    same_if_there("samples/step" + line.at("step").dump() + ".png");
  }
}

// Stops after a number of steps, as Ctrl-C would.
inline RunHooks stop_after(int steps) {
  return {nullptr, [left = steps]() mutable { return --left == 0 ? 2 : 0; }};
}

}  // namespace siamese::train
