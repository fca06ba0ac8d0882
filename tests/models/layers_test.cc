// What differs from block to block: windows by a pattern, and scaled rotary frequencies in full blocks only.
#include "tests/models/small_families.h"
#include "tests/models/written_out.h"
#include "tests/models/written_out_lm.h"
#include "tests/support/errors.h"

namespace siamese::models {
namespace layers_test {

ModelConfig layered(int64_t window, const std::string& pattern, const std::string& scaling = "none",
                    RopeScalingLayers layers = RopeScalingLayers::all) {
  ModelConfig config = small_config("pre");
  config.blocks = 5;
  config.window = window;
  config.window_pattern = pattern;
  config.rope_scaling = scaling;
  config.rope_scaling_layers = layers;
  resolve(config, {});
  return config;
}

const char* const kYarn = "yarn(factor=4, context=6)";

TEST(Layers, WindowsOfBlocks) {
  const ModelConfig config = layered(4, "SSF");
  std::vector<int64_t> windows;
  for (int64_t block = 0; block < 5; ++block) windows.push_back(config.window_of(block));
  EXPECT_EQ(windows, std::vector<int64_t>({4, 4, 0, 4, 4}));
  ModelConfig images = small_family(Family::vit, "pre");
  images.window = 4;
  EXPECT_EQ(images.window_of(0), 0);
}

TEST(Layers, AreTheEquation) {
  for (const ModelConfig& config :
       {layered(4, "SSF"), layered(3, "FS"), layered(4, "S"), layered(4, "SSF", kYarn, RopeScalingLayers::full),
        layered(4, "SF", kYarn), layered(4, "SF", "llama3(factor=2, context=6)", RopeScalingLayers::full)}) {
    const auto model = make_lm(config, 1, at::kDouble);
    perturb(*model);
    const at::Tensor tokens = random_inputs(config, 2, 3).tokens.narrow(1, 0, config.context);
    expect_same_function(*model, model->hidden(tokens), WrittenOutLm(*model, config).hidden(tokens),
                         config.window_pattern + " " + config.rope_scaling);
  }
}

TEST(Layers, SpecialCasesAreTheSameBits) {
  const c10::NoGradGuard no_grad;
  const auto hidden = [](const ModelConfig& config) {
    return make_lm(config)->hidden(random_inputs(config, 2, 3).tokens.narrow(1, 0, 12));
  };
  const at::Tensor plain = hidden(layered(0, "S")), window = hidden(layered(4, "S"));
  testing::expect_same_bits(hidden(layered(4, "F")), plain, "all full");
  testing::expect_same_bits(hidden(layered(12, "SF")), plain, "a window of the whole context");
  testing::expect_same_bits(hidden(layered(4, "SS")), window, "all in the window");
  testing::expect_same_bits(hidden(layered(4, "SSSSSF")), window, "a pattern longer than the model");
  EXPECT_GT(testing::largest_difference(hidden(layered(4, "SF")), window), 1e-3);
  EXPECT_GT(testing::largest_difference(hidden(layered(4, "SF")), plain), 1e-3);
  const at::Tensor scaled = hidden(layered(0, "S", kYarn));
  testing::expect_same_bits(hidden(layered(0, "S", kYarn, RopeScalingLayers::full)), scaled, "all blocks are full");
  testing::expect_same_bits(hidden(layered(4, "SF", "yarn(factor=1, context=6)", RopeScalingLayers::full)),
                            hidden(layered(4, "SF")), "a factor of 1");
  EXPECT_GT(testing::largest_difference(hidden(layered(12, "SF", kYarn, RopeScalingLayers::full)), scaled), 1e-3);
}

TEST(Layers, CachedGenerationEqualsTheWholePass) {
  const c10::NoGradGuard no_grad;
  for (int64_t stride : {0, 2}) {
    ModelConfig config = layered(4, "SSF", kYarn, RopeScalingLayers::full);
    config.depth_attention_stride = stride;
    const auto model = make_lm(config, 1, at::kDouble);
    const at::Tensor tokens = random_inputs(config, 2, 3).tokens.narrow(1, 0, config.context);
    const at::Tensor whole = model->hidden(tokens);
    LmCache cache = model->make_cache(2, config.context);
    model->hidden(tokens.narrow(1, 0, 3), {}, &cache);
    for (int64_t at = 3; at < config.context; ++at) {
      const at::Tensor made = model->hidden(tokens.narrow(1, at, 1), {}, &cache);
      testing::expect_relative(made.select(1, 0), whole.select(1, at), 1e-12, "token " + std::to_string(at));
    }
  }
}

// Of 12 tokens, 12 * 12 / 2 pairs in a full block; in a window of 4, 12 * 4 - 4 * 4 / 2.
TEST(Layers, FlopsFollowTheWindows) {
  const auto flops = [](const ModelConfig& config) { return make_lm(config)->forward_flops(1); };
  const double full = flops(layered(0, "S")), some = flops(layered(4, "SSF"));
  EXPECT_DOUBLE_EQ(full - some, 2.0 * 2 * 24 * 4 * (72 - 40));
}

TEST(Layers, ImpossibleKeysAreRefused) {
  testing::expect_error<UsageError>([] { layered(4, "SLF"); }, {"model.window_pattern: expected letters S", "'SLF'"});
  testing::expect_error<UsageError>([] { layered(4, ""); }, {"model.window_pattern: expected letters S"});
  testing::expect_error<UsageError>([] { layered(4, "S", kYarn, RopeScalingLayers::full); },
                                    {"model.rope_scaling_layers: expected all where every block has a window"});
}

}  // namespace layers_test
}  // namespace siamese::models
