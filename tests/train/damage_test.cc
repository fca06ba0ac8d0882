// A bit that flips in a file of a checkpoint: the file says so, by tensor, key or checksum, or nothing that matters
// changed.
#include "tests/train/tiny_run.h"

#include "siamese/base/check.h"
#include "siamese/io/safetensors.h"
#include "siamese/train/checkpoint.h"
#include "siamese/train/config_keys.h"
#include "siamese/train/trainer.h"

namespace siamese::train {
namespace damage_test {

namespace fs = std::filesystem;

std::string flipped(std::string bytes, size_t at) {
  bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
  return bytes;
}

// Without a wait for the disk, which thousands of writes would make long.
void put(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

// A run of 4 steps and its last checkpoint.
struct Saved {
  explicit Saved(const std::string& name) : folder(name) {
    start_run(config, folder / "run", false, "", {});
    checkpoint = folder / "run" / "step4";
  }
  const RunConfig config = tiny_config({"train.steps=4", "train.ema=0.5", "model.width=8", "model.blocks=1"});
  TemporaryFolder folder;
  fs::path checkpoint;
};

TEST(Damage, OfTensorsIsNamed) {
  const Saved saved("damage_tensors");
  Trainer trainer(saved.config, true);
  ASSERT_EQ(error_of([&] { trainer.resume_from(saved.checkpoint); }), "");
  for (const char* const name : {"model.safetensors", "optim.safetensors", "ema.safetensors"}) {
    const fs::path path = saved.checkpoint / name;
    const std::string good = io::read_file(path);
    const auto file = io::SafetensorsFile::open(path);
    size_t data = good.size();
    for (const auto& tensor : file.tensors()) data -= tensor.bytes;
    const auto expect_named = [&](size_t at, const std::string& what) {
      put(path, flipped(good, at));
      const std::string error = error_of([&] { trainer.resume_from(saved.checkpoint); });
      EXPECT_NE(error.find(path.string()), std::string::npos) << name << ", byte " << at << ": " << error;
      EXPECT_NE(error.find(what), std::string::npos) << name << ", byte " << at << ": " << error;
    };
    for (size_t at = 0; at < data; at += 7) expect_named(at, ": ");
    size_t begin = data;
    for (const auto& tensor : file.tensors()) {
      for (const size_t at : {begin, begin + tensor.bytes / 2, begin + tensor.bytes - 1}) {
        expect_named(at, "tensor '" + tensor.name + "': expected the checksum ");
      }
      begin += tensor.bytes;
    }
    put(path, good);
  }
  EXPECT_EQ(error_of([&] { trainer.resume_from(saved.checkpoint); }), "");
}

TEST(Damage, OfTheStateIsNamed) {
  const Saved saved("damage_state");
  const fs::path path = saved.checkpoint / "trainer.json";
  const std::string good = io::read_file(path);
  for (size_t at = 0; at < good.size(); ++at) {
    put(path, flipped(good, at));
    const std::string error = error_of([&] { read_trainer_state(path); });
    EXPECT_NE(error.find(path.string()), std::string::npos) << "byte " << at << ": " << error;
  }
}

// A comment or a space may be anything, and a key that may be edited is a key that was edited.
TEST(Damage, OfAConfigIsNamedOrHarmless) {
  const Saved saved("damage_config");
  const TrainerState state = read_trainer_state(saved.checkpoint / "trainer.json");
  const std::string good = io::read_file(saved.checkpoint / "config.yaml");
  const fs::path run = saved.folder / "run", file = saved.folder / "damaged.yaml";
  int named = 0;
  for (size_t at = 0; at < good.size(); ++at) {
    put(file, flipped(good, at));
    RunConfig damaged;
    if (!error_of([&] { damaged = read_config_file(file.string()); }).empty()) continue;  // which names the file
    // Of a checkpoint.
    const std::string error = error_of([&] { check_unchanged(damaged, state, file); });
    named += error.empty() ? 0 : 1;
    if (error.empty()) {
      EXPECT_EQ(fixed_config(damaged), fixed_config(saved.config)) << "byte " << at;
    }
    // Of the run.
    std::string said;
    const std::string refused =
        error_of([&] { said = check_edits(damaged, saved.config, state, run, saved.checkpoint); });
    EXPECT_EQ(refused.empty() && said.empty(), config_text(damaged) == config_text(saved.config)) << "byte " << at;
  }
  EXPECT_GT(named, 20);  // most others are no config any more
}

TEST(Damage, AModelThatIsNotWhatTheWeightsWereSavedUnderIsNamed) {
  const Saved saved("damage_model");
  const fs::path config = saved.checkpoint / "config.yaml";
  fs::remove(saved.checkpoint / "trainer.json");  // the weights alone have to know
  for (const auto& [key, value, before] : {std::tuple{"rope_theta", "500", "10000"},
                                           {"norm_eps", "0.1", "1e-05"},
                                           {"residual", "pre", "siamese"},
                                           {"heads", "1", "2"}}) {
    const RunConfig other =
        tiny_config({"train.steps=4", "model.width=8", "model.blocks=1", std::string("model.") + key + "=" + value});
    put(config, config_text(other));
    EXPECT_NE(
        error_of([&] {
          load_model(saved.checkpoint);
        }).find(config.string() + ": model." + key + ": " + value + ", and the weights were saved under " + before),
        std::string::npos)
        << key << error_of([&] { load_model(saved.checkpoint); });
  }
  // More is seen at once, by the same function.
  put(config, config_text(tiny_config({"model.width=8", "model.blocks=1", "model.context=48"})));
  EXPECT_EQ(load_model(saved.checkpoint).config.model.context, 48);
}

}  // namespace damage_test
}  // namespace siamese::train
