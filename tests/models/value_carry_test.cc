// Values of earlier blocks (nn/value_carry.h) in whole models: their equations, and that the carry between blocks is
// there wherever a pass is cut: recomputed segments, caches, documents, files.
#include "siamese/nn/value_carry.h"

#include <cmath>
#include <filesystem>

#include "tests/models/small_families.h"
#include "tests/models/written_out.h"
#include "tests/models/written_out_lm.h"
#include "tests/support/errors.h"
#include "tests/support/threads.h"

#include "siamese/models/pass_memory.h"
#include "siamese/models/weights.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/operand.h"

namespace siamese::models {
namespace value_carry_test {

using Norm = AttentionNormChoice;

std::string name_of(const ModelConfig& config) {
  const std::string of = config.depth_attention_stride > 0 ? "depth " + std::to_string(config.depth_attention_stride) +
                                                                 "+" + std::to_string(config.depth_attention_recent)
                                                           : std::string(enum_text(config.value_residual));
  return case_name(config.family, config.residual) + ", " + of;
}

TEST(ValueCarry, SourcesOfABlock) {
  const auto sources = [](int64_t stride, int64_t recent, int64_t block) {
    return nn::depth_sources({.depth_stride = stride, .depth_recent = recent}, block);
  };
  using List = std::vector<int64_t>;
  EXPECT_EQ(sources(8, 0, 0), List({}));
  EXPECT_EQ(sources(8, 0, 8), List({0}));
  EXPECT_EQ(sources(8, 0, 15), List({0, 8}));
  EXPECT_EQ(sources(2, 2, 6), List({0, 2, 4, 5}));
  EXPECT_EQ(sources(100, 0, 50), List({0}));
  EXPECT_EQ(sources(3, 9, 3), List({0, 1, 2}));
}

ModelConfig deep_lm(ModelConfig config) {
  config.residual = "pre";
  config.blocks = 5;
  resolve(config, {});
  return config;
}

TEST(ValueCarry, IsItsEquationInALanguageModel) {
  for (ModelConfig config : value_mixings(Family::lm)) {
    for (const Norm norm : {Norm::none, Norm::qk, Norm::qk_full, Norm::qkv}) {
      config = deep_lm(config);
      config.attention_norm = norm;
      const std::string what = name_of(config) + " " + std::string(enum_text(norm));
      const auto model = make_lm(config, 1, at::kDouble);
      perturb(*model);
      const at::Tensor tokens = random_inputs(config, 2, 3).tokens.narrow(1, 0, config.context);
      expect_same_function(*model, model->hidden(tokens), WrittenOutLm(*model, config).hidden(tokens), what);
    }
  }
}

// A stock ViT, in which all tokens see one another and nothing is rotated.
at::Tensor vit_by_hand(const WrittenOut& w, const ModelConfig& config, const at::Tensor& images) {
  const int64_t batch = images.size(0), tokens = config.context, hd = config.width / config.heads;
  const at::Tensor first = w.p("class_token").expand({batch, 1, config.width});
  at::Tensor h = at::cat({first, w.patches(images, config.patch)}, 1) + w.p("positions.weight");
  const auto heads = [&](const at::Tensor& t) { return t.reshape({batch, tokens, config.heads, hd}).transpose(1, 2); };
  std::vector<at::Tensor> keys, values;
  for (int64_t l = 0; l < config.blocks; ++l) {
    const std::string name = "blocks." + std::to_string(l);
    const auto parts = w.linear(name + ".attention.qkv", w.norm(name + ".attention_junction.norm", h)).chunk(3, -1);
    const at::Tensor q = heads(parts[0]), k = heads(parts[1]);
    at::Tensor v = heads(parts[2]);
    keys.push_back(k);
    values.push_back(v);
    if (config.value_residual == nn::ValueResidual::half) v = l > 0 ? (values[0] + v) / 2 : v;
    if (config.depth_attention_stride > 0) {
      std::vector<at::Tensor> scores, sources;
      for (int64_t j = 0; j <= l; ++j) {
        if (j < l && j % config.depth_attention_stride != 0 && j < l - config.depth_attention_recent) continue;
        scores.push_back((q * keys[static_cast<size_t>(j)]).sum(-1, true) / std::sqrt(static_cast<double>(hd)));
        sources.push_back(values[static_cast<size_t>(j)]);
      }
      v = (at::softmax(at::stack(scores), 0) * at::stack(sources)).sum(0);
      values.back() = v;
    }
    const at::Tensor shares = at::softmax(at::matmul(q, k.transpose(2, 3)) / std::sqrt(static_cast<double>(hd)), -1);
    h = h + w.linear(name + ".attention.out", at::matmul(shares, v).transpose(1, 2).reshape(h.sizes()));
    h = h + w.feed_forward(l, w.norm(name + ".ffn_junction.norm", h), "none");
  }
  return w.norm("close.norm", h).select(1, 0);
}

TEST(ValueCarry, IsItsEquationInAVit) {
  for (ModelConfig config : value_mixings(Family::vit)) {
    if (config.value_residual == nn::ValueResidual::learned) continue;
    config.residual = "pre";
    config.blocks = 5;
    resolve(config, {});
    const auto model = make_small(config, 1, at::kDouble);
    perturb(*model);
    const at::Tensor images = family_inputs(config, 3, 4).images.to(at::kDouble);
    const WrittenOut w(*model, config.heads);
    const auto& vit = dynamic_cast<const VisionTransformer&>(*model);
    expect_same_function(*model, vit.logits(vit.features(images)), w.linear("head", vit_by_hand(w, config, images)),
                         name_of(config));
  }
}

// The path of dropped weights is another one; a chance of next to nothing drops none.
TEST(ValueCarry, WithDroppedWeightsToo) {
  for (const Family family : {Family::lm, Family::vit}) {
    for (ModelConfig config : value_mixings(family)) {
      const Inputs inputs = family_inputs(config, 2, 3);
      const auto plain = loss_and_gradients(*make_small(config, 1, at::kDouble), inputs, family_options(config, 2));
      config.dropout.attention = 1e-13;
      const auto dropped = loss_and_gradients(*make_small(config, 1, at::kDouble), inputs, family_options(config, 2));
      EXPECT_NEAR(dropped.first, plain.first, 1e-11 * plain.first) << name_of(config);
      for (size_t i = 0; i < plain.second.size(); ++i) {
        testing::expect_relative(dropped.second[i], plain.second[i], 1e-9, name_of(config));
      }
    }
  }
}

// The mixing is no decoration: each of them is another function than plain, and than the others.
TEST(ValueCarry, EachIsAnotherFunction) {
  const c10::NoGradGuard no_grad;
  std::vector<ModelConfig> configs = value_mixings(Family::lm);
  configs.push_back(small_config("pre"));
  std::vector<at::Tensor> made;
  for (const ModelConfig& config : configs) {
    const ModelConfig deep = deep_lm(config);
    const auto model = make_lm(deep);
    made.push_back(model->hidden(random_inputs(deep, 2, 3).tokens.narrow(1, 0, 12)));
    for (size_t i = 0; i + 1 < made.size(); ++i) {
      EXPECT_GT(testing::largest_difference(made.back(), made[i]), 1e-3) << name_of(deep) << " " << i;
    }
  }
}

TEST(ValueCarry, WhereThereIsNothingToMixItIsPlain) {
  for (ModelConfig config : value_mixings(Family::lm)) {
    config.blocks = 1;
    ModelConfig plain = small_config("siamese");
    plain.blocks = 1;
    const auto mixed = make_lm(config, 1, at::kDouble), alone = make_lm(plain, 1, at::kDouble);
    const at::Tensor tokens = random_inputs(config, 2, 3).tokens.narrow(1, 0, 12);
    testing::expect_relative(mixed->hidden(tokens), alone->hidden(tokens), 1e-13, name_of(config));
  }
}

TEST(ValueCarry, AStrideOfAllBlocksMeansBlock0Alone) {
  ModelConfig config = deep_lm(small_config("pre"));
  config.depth_attention_stride = config.blocks;
  ModelConfig longer = config;
  longer.depth_attention_stride = 4096;
  const at::Tensor tokens = random_inputs(config, 2, 3).tokens.narrow(1, 0, 12);
  testing::expect_same_bits(make_lm(config)->hidden(tokens), make_lm(longer)->hidden(tokens), "block 0 alone");
}

// With W_q = 0 every source weighs the same: v'_1 = (v_0 + v_1) / 2, which is the half residual where there are no more
// blocks.
TEST(ValueCarry, WithoutAQueryDepthAttentionIsTheMean) {
  const c10::NoGradGuard no_grad;
  ModelConfig depth = small_config("pre");
  depth.blocks = 2;
  ModelConfig half = depth;
  depth.depth_attention_stride = 1;
  half.value_residual = nn::ValueResidual::half;
  const auto a = make_lm(depth, 1, at::kDouble), b = make_lm(half, 1, at::kDouble);
  for (const auto& model : {&a, &b}) {
    for (int64_t block = 0; block < 2; ++block) {
      const std::string name = "blocks." + std::to_string(block) + ".attention.qkv.weight";
      (*model)->parameters().find(name)->value.narrow(0, 0, depth.width).zero_();
    }
  }
  const at::Tensor tokens = random_inputs(depth, 2, 3).tokens.narrow(1, 0, 12);
  testing::expect_relative(a->hidden(tokens), b->hidden(tokens), 1e-13, "the mean");
}

// 5 blocks, stride 2 and the one before: sources {0}, {0, 1}, {0, 2}, {0, 2, 3} of blocks 1 to 4, and each block
// itself, each a product with a key and one with a weight of every token's key/value heads.
TEST(ValueCarry, FlopsCountTheSourcesInEveryFamily) {
  for (const Family family : {Family::lm, Family::moe, Family::vit, Family::dit}) {
    ModelConfig config = small_family(family, "pre");
    config.blocks = 5;
    const double plain = make_small(config)->forward_flops(3);
    config.depth_attention_stride = 2;
    config.depth_attention_recent = 1;
    const double sources = (1 + 1) + (2 + 1) + (2 + 1) + (3 + 1);
    const auto kv_width = static_cast<double>(config.width / config.heads * config.kv_heads);
    EXPECT_DOUBLE_EQ(make_small(config)->forward_flops(3) - plain,
                     2.0 * 3 * static_cast<double>(config.context) * sources * 2 * kv_width)
        << enum_text(family);
  }
}

TEST(ValueCarry, RecomputedItHasTheSameBitsInEveryFamily) {
  for (const Family family : all_families()) {
    for (ModelConfig config : value_mixings(family)) {
      config.blocks = 5;
      const auto model = make_small(config);
      perturb(*model);
      const Inputs inputs = family_inputs(config, 3, 2);
      LossOptions options = family_options(config, 3);
      const auto kept = loss_and_gradients(*model, inputs, options);
      for (const int64_t every : {1, 2, 3, 5}) {
        options.stack.recompute_every = every;
        const auto again = loss_and_gradients(*model, inputs, options);
        EXPECT_EQ(again.first, kept.first) << name_of(config);
        for (size_t i = 0; i < kept.second.size(); ++i) {
          testing::expect_same_bits(
              again.second[i], kept.second[i],
              name_of(config) + " every " + std::to_string(every) + ": " + model->parameters().list()[i].name);
        }
      }
    }
  }
}

TEST(ValueCarry, CachedGenerationEqualsTheWholePass) {
  const c10::NoGradGuard no_grad;
  for (ModelConfig config : value_mixings(Family::lm)) {
    for (const Positions positions : {Positions::rope, Positions::learned}) {
      config = deep_lm(config);
      config.positions = positions;
      config.attention_norm = Norm::qkv;
      const auto model = make_lm(config, 1, at::kDouble);
      perturb(*model);
      const at::Tensor tokens = random_inputs(config, 3, 3).tokens.narrow(1, 0, config.context);
      const at::Tensor whole = model->hidden(tokens);
      LmCache cache = model->make_cache(3, config.context);
      // Sequences that begin with prompts of their own, then token by token.
      const std::vector<int64_t> prompts = {5, 1, 3};
      for (size_t i = 0; i < 3; ++i) {
        LmCache own = cache.sequence(i);
        const auto at = static_cast<int64_t>(i);
        const at::Tensor made = model->hidden(tokens.narrow(0, at, 1).narrow(1, 0, prompts[i]), {}, &own);
        testing::expect_relative(made[0], whole[at].narrow(0, 0, prompts[i]), 1e-12, name_of(config) + " prompt");
        cache.past[i] = own.past[0];
      }
      for (int64_t step = 0; step < 6; ++step) {
        std::vector<at::Tensor> next;
        for (int64_t i = 0; i < 3; ++i) next.push_back(tokens[i][prompts[static_cast<size_t>(i)] + step]);
        const at::Tensor made = model->hidden(at::stack(next).unsqueeze(1), {}, &cache);
        for (int64_t i = 0; i < 3; ++i) {
          testing::expect_relative(made[i][0], whole[i][prompts[static_cast<size_t>(i)] + step], 1e-12,
                                   name_of(config) + " step " + std::to_string(step));
        }
      }
    }
  }
}

// Two documents in a row are what each is alone. Where blocks rotate alike, a token's position in its row does not
// matter for its own q and k; where full blocks rotate by other angles, it does.
TEST(ValueCarry, DocumentsDoNotSeeEachOther) {
  std::vector<ModelConfig> configs = value_mixings(Family::lm);
  ModelConfig rotated = configs.back();
  rotated.window = 4;
  rotated.window_pattern = "SF";
  rotated.rope_scaling = "yarn(factor=4, context=6)";
  rotated.rope_scaling_layers = RopeScalingLayers::full;
  configs.push_back(rotated);
  for (ModelConfig config : configs) {
    config = deep_lm(config);
    const auto model = make_lm(config, 1, at::kDouble);
    const at::Tensor tokens = random_inputs(config, 1, 3).tokens;  // 13: 7 and 6
    Inputs packed;
    packed.tokens = tokens;
    packed.borders = {{7}};
    packed.weights = at::ones({1, 12}, at::kDouble);
    packed.weights[0][6] = 0;
    const auto [loss, gradients] = loss_and_gradients(*model, packed, {});
    std::vector<at::Tensor> together;
    for (const auto& gradient : gradients) together.push_back(gradient.clone());
    Inputs first, second;
    first.tokens = tokens.narrow(1, 0, 7).clone();
    second.tokens = tokens.narrow(1, 7, 6).clone();
    const auto [first_loss, first_gradients] = loss_and_gradients(*model, first, {});
    std::vector<at::Tensor> apart;
    for (const auto& gradient : first_gradients) apart.push_back(gradient.clone());
    const auto [second_loss, second_gradients] = loss_and_gradients(*model, second, {});
    EXPECT_NEAR(loss, first_loss + second_loss, 1e-11 * loss) << name_of(config);
    for (size_t i = 0; i < apart.size(); ++i) {
      testing::expect_relative(together[i], apart[i] + second_gradients[i], 1e-10, name_of(config));
    }
  }
}

TEST(ValueCarry, SameBitsAtAnyThreadCount) {
  for (const Family family : {Family::lm, Family::dit}) {
    for (const ModelConfig& config : value_mixings(family)) {
      const auto model = make_small(config);
      perturb(*model);
      const Inputs inputs = family_inputs(config, 40, 2);
      for (const auto mode : {ops::Mode::automatic, ops::Mode::plain}) {
        const ops::ModeGuard guard(mode);
        testing::expect_same_at_any_thread_count(name_of(config), [&] {
          const auto [loss, gradients] = loss_and_gradients(*model, inputs, family_options(config, 40));
          std::vector<at::Tensor> made = {at::scalar_tensor(loss, at::kDouble)};
          for (const auto& gradient : gradients) made.push_back(gradient.clone());
          return made;
        });
      }
    }
  }
}

TEST(ValueCarry, WeightsAreSavedAndLoaded) {
  const auto path = std::filesystem::temp_directory_path() / "siamese_value_carry_test.safetensors";
  for (const ModelConfig& config : value_mixings(Family::lm)) {
    const auto model = make_lm(config, 1), other = make_lm(config, 2);
    save_tensors(path, named_values(model->parameters()), {});
    load_tensors(path, named_values(other->parameters()));
    const at::Tensor tokens = random_inputs(config, 2, 3).tokens.narrow(1, 0, 12);
    testing::expect_same_bits(other->hidden(tokens), model->hidden(tokens), name_of(config));
    const bool learned = config.value_residual == nn::ValueResidual::learned;
    EXPECT_EQ(model->parameters().find("blocks.0.attention.value_gate.weight"), nullptr);
    EXPECT_EQ(model->parameters().find("blocks.1.attention.value_gate.weight") != nullptr, learned);
  }
  std::filesystem::remove(path);
}

TEST(ValueCarry, ImpossibleKeysAreRefused) {
  const auto refused = [](const std::vector<std::string>& words, const auto& change) {
    ModelConfig config = small_config("pre");
    change(config);
    testing::expect_error<UsageError>([&] { resolve(config, {}); }, words);
  };
  refused({"model.value_residual: expected none with model.depth_attention_stride, got half"}, [](ModelConfig& config) {
    config.value_residual = nn::ValueResidual::half;
    config.depth_attention_stride = 2;
  });
  refused({"model.depth_attention_stride: expected", "got -1"},
          [](ModelConfig& config) { config.depth_attention_stride = -1; });
  refused({"model.depth_attention_recent: expected"},
          [](ModelConfig& config) { config.depth_attention_recent = 5000; });
}

}  // namespace value_carry_test
}  // namespace siamese::models
