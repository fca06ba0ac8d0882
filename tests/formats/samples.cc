#include "tests/formats/samples.h"

#include "tests/formats/sample_builder.h"

namespace siamese::formats {
namespace {

using models::ModelConfig;

Sample official_lm(bool tied, at::ScalarType dtype) {
  Sample sample{tied ? "official-lm" : "official-lm untied", Layout::official_lm};
  sample.config = text_config("siamese(x=hybrid)", tied);
  sample.said = {{"rope_theta", "5000"}};
  sample.assumed = {"model.norm_eps", "model.context"};
  Builder build(sample, dtype);
  build.same("embedding.weight", "transformer.wte.weight", {11, 12});
  for (int64_t n = 0; n < 2; ++n) {
    const std::string ours = block_name("blocks.", n, ".");
    const std::string theirs = block_name("transformer.blocks.", n, ".");
    build.same(ours + "attention.qkv.weight", theirs + "att_proj.weight", {12 + 2 * 2 * 2, 12});
    build.same(ours + "attention.q_norm.weight", theirs + "q_norm.weight", {2});
    build.same(ours + "attention.k_norm.weight", theirs + "k_norm.weight", {2});
    build.same(ours + "attention.v_norm.weight", theirs + "v_norm.weight", {2});
    build.same(ours + "attention.out.weight", theirs + "attn_out.weight", {12, 12});
    build.same(ours + "attention_junction.y_norm.weight", theirs + "attn_y_norm.weight", {12});
    build.same(ours + "attention_junction.x_scale", theirs + "c1", {12});
    build.same(ours + "ffn_junction.x_norm.weight", theirs + "ff_norm.weight", {12});
    build.same(ours + "ffn_junction.y_norm.weight", theirs + "ff_y_norm.weight", {12});
    build.same(ours + "ffn_junction.input_norm.weight", theirs + "ff_input_norm.weight", {12});
    build.same(ours + "ffn.in.weight", theirs + "ff_proj.weight", {14, 12});
    build.same(ours + "ffn.out.weight", theirs + "ff_out.weight", {12, 7});
  }
  build.same("close.x_norm.weight", "transformer.ln_f.weight", {12});
  build.same("close.y_norm.weight", "transformer.ln_y_f.weight", {12});
  build.same("close.norm.weight", "transformer.ln_final_f.weight", {12});
  if (!tied) build.same("head.weight", "transformer.ff_out.weight", {11, 12});
  return sample;
}

ModelConfig image_config(models::Family family) {
  ModelConfig config;
  config.family = family;
  config.residual = "siamese";
  config.width = 12;
  config.blocks = 2;
  config.heads = 3;
  config.ffn_width = 9;
  config.ffn = family == models::Family::vit ? nn::FeedForwardKind::gelu : nn::FeedForwardKind::gelu_tanh;
  config.bias = true;
  config.norm = nn::NormKind::layer;
  config.norm_eps = 1e-6;
  config.image = 6;
  config.patch = 2;
  config.channels = 3;
  config.classes = 5;
  return config;
}

Sample official_deit(at::ScalarType dtype) {
  Sample sample{"official-deit", Layout::official_deit};
  sample.config = image_config(models::Family::vit);
  sample.said = {{"heads", "3"}};
  sample.assumed = {"model.norm_eps"};
  Builder build(sample, dtype);
  build.folded("patch.weight", "patch_embed.proj.weight", {12, 12}, {12, 3, 2, 2});
  build.same("patch.bias", "patch_embed.proj.bias", {12});
  build.folded("class_token", "cls_token", {12}, {1, 1, 12});
  build.folded("positions.weight", "pos_embed", {10, 12}, {1, 10, 12});
  for (int64_t n = 0; n < 2; ++n) {
    const std::string at = block_name("blocks.", n, ".");
    build.both(at + "attention_junction.x_norm", at + "post_norm1", {12});
    build.both(at + "attention_junction.y_norm", at + "pre_norm1", {12});
    build.both(at + "attention_junction.input_norm", at + "input_norm1", {12});
    build.both(at + "ffn_junction.x_norm", at + "post_norm2", {12});
    build.both(at + "ffn_junction.y_norm", at + "pre_norm2", {12});
    build.both(at + "ffn_junction.input_norm", at + "input_norm2", {12});
    build.both(at + "attention.qkv", at + "attn.qkv", {36, 12});
    build.both(at + "attention.out", at + "attn.proj", {12, 12});
    build.both(at + "ffn.in", at + "mlp.fc1", {9, 12});
    build.both(at + "ffn.out", at + "mlp.fc2", {12, 9});
  }
  build.both("close.x_norm", "pre_norm", {12});
  build.both("close.y_norm", "post_norm", {12});
  build.both("close.norm", "final_norm", {12});
  build.both("head", "head", {5, 12});
  return sample;
}

Sample official_dit(bool guided, at::ScalarType dtype) {
  Sample sample{guided ? "official-dit" : "official-dit without guidance", Layout::official_dit};
  sample.config = image_config(models::Family::dit);
  sample.config.learn_sigma = guided;
  sample.said = {{"heads", "3"}};
  sample.assumed = {"model.norm_eps", "model.label_dropout"};
  if (!guided) {
    sample.config.label_dropout = 0;
    sample.said["label_dropout"] = "0";
    sample.assumed.pop_back();
  }
  Builder build(sample, dtype);
  build.folded("patch.weight", "x_embedder.proj.weight", {12, 12}, {12, 3, 2, 2});
  build.same("patch.bias", "x_embedder.proj.bias", {12});
  build.folded("positions.weight", "pos_embed", {9, 12}, {1, 9, 12});
  build.both("timestep.in", "t_embedder.mlp.0", {12, 256});
  build.both("timestep.out", "t_embedder.mlp.2", {12, 12});
  build.same("labels.weight", "y_embedder.embedding_table.weight", {guided ? 6 : 5, 12});
  for (int64_t n = 0; n < 2; ++n) {
    const std::string at = block_name("blocks.", n, ".");
    build.both(at + "attention_junction.x_norm", at + "postnorm1", {12});
    build.both(at + "attention_junction.y_norm", at + "prenorm1", {12});
    build.both(at + "ffn_junction.x_norm", at + "postnorm2", {12});
    build.both(at + "ffn_junction.y_norm", at + "prenorm2", {12});
    build.both(at + "attention.qkv", at + "attn.qkv", {36, 12});
    build.both(at + "attention.out", at + "attn.proj", {12, 12});
    build.both(at + "ffn.in", at + "mlp.fc1", {9, 12});
    build.both(at + "ffn.out", at + "mlp.fc2", {12, 9});
    build.both(at + "modulation", at + "adaLN_modulation.1", {72, 12});
  }
  build.both("close.x_norm", "postnorm", {12});
  build.both("close.y_norm", "prenorm", {12});
  build.both("final.modulation", "final_layer.adaLN_modulation.1", {24, 12});
  build.both("final.out", "final_layer.linear", {guided ? 24 : 12, 12});
  return sample;
}

Sample hf_olmo2(at::ScalarType dtype) {
  Sample sample{"hf-olmo2", Layout::hf_olmo2};
  sample.config = text_config("olmo2", false);
  sample.said = {{"rope_theta", "5000"}, {"heads", "6"}};
  sample.assumed = {"model.norm_eps", "model.context"};
  Builder build(sample, dtype);
  build.same("embedding.weight", "model.embed_tokens.weight", {11, 12});
  for (int64_t n = 0; n < 2; ++n) {
    const std::string ours = block_name("blocks.", n, ".");
    const std::string theirs = block_name("model.layers.", n, ".");
    hf_sublayers(build, ours, theirs, 4);
    build.same(ours + "attention.q_norm.weight", theirs + "self_attn.q_norm.weight", {12});
    build.same(ours + "attention.k_norm.weight", theirs + "self_attn.k_norm.weight", {4});
    build.same(ours + "attention_junction.output_norm.weight", theirs + "post_attention_layernorm.weight", {12});
    build.same(ours + "ffn_junction.output_norm.weight", theirs + "post_feedforward_layernorm.weight", {12});
  }
  build.same("close.norm.weight", "model.norm.weight", {12});
  build.same("head.weight", "lm_head.weight", {11, 12});
  return sample;
}

Sample hf_gpt2(at::ScalarType dtype) {
  Sample sample{"hf-gpt2", Layout::hf_gpt2};
  sample.config = text_config("pre", true);
  sample.config.kv_heads = 6;
  sample.config.ffn = nn::FeedForwardKind::gelu_tanh;
  sample.config.positions = models::Positions::learned;
  sample.config.bias = true;
  sample.config.norm = nn::NormKind::layer;
  sample.config.context = 8;
  sample.config.rope_theta = models::ModelConfig().rope_theta;
  sample.said = {{"heads", "6"}};
  sample.assumed = {"model.norm_eps"};
  Builder build(sample, dtype);
  build.same("embedding.weight", "transformer.wte.weight", {11, 12});
  build.same("positions.weight", "transformer.wpe.weight", {8, 12});
  for (int64_t n = 0; n < 2; ++n) {
    const std::string ours = block_name("blocks.", n, ".");
    const std::string theirs = block_name("transformer.h.", n, ".");
    build.both(ours + "attention_junction.norm", theirs + "ln_1", {12});
    build.flipped(ours + "attention.qkv", theirs + "attn.c_attn", 36, 12);
    build.flipped(ours + "attention.out", theirs + "attn.c_proj", 12, 12);
    build.both(ours + "ffn_junction.norm", theirs + "ln_2", {12});
    build.flipped(ours + "ffn.in", theirs + "mlp.c_fc", 7, 12);
    build.flipped(ours + "ffn.out", theirs + "mlp.c_proj", 12, 7);
  }
  build.both("close.norm", "transformer.ln_f", {12});
  return sample;
}

Sample hf_siamese(models::AttentionNormChoice norm, at::ScalarType dtype) {
  using Choice = models::AttentionNormChoice;
  Sample sample{"hf-siamese " + std::string(enum_text(norm)), Layout::hf_siamese};
  sample.config = text_config("siamese(x=hybrid)", false);
  sample.config.attention_norm = norm;
  sample.said = {{"rope_theta", "5000"}};
  if (norm == Choice::qk_full || norm == Choice::none) sample.said["heads"] = "6";
  sample.assumed = {"model.norm_eps", "model.context"};
  const bool full = norm == Choice::qk_full;
  Builder build(sample, dtype);
  build.same("embedding.weight", "model.embed_tokens.weight", {11, 12});
  for (int64_t n = 0; n < 2; ++n) {
    const std::string ours = block_name("blocks.", n, ".");
    const std::string theirs = block_name("model.layers.", n, ".");
    hf_sublayers(build, ours, theirs, 4);
    if (norm != Choice::none) {
      build.same(ours + "attention.q_norm.weight", theirs + "self_attn.q_norm.weight", {full ? 12 : 2});
      build.same(ours + "attention.k_norm.weight", theirs + "self_attn.k_norm.weight", {full ? 4 : 2});
    }
    if (norm == Choice::scheme) build.same(ours + "attention.v_norm.weight", theirs + "self_attn.v_norm.weight", {2});
    build.same(ours + "attention_junction.y_norm.weight", theirs + "siamese_attn_pre_norm.weight", {12});
    build.same(ours + "attention_junction.x_scale", theirs + "siamese_hybrid_attn_scale", {12});
    build.same(ours + "ffn_junction.x_norm.weight", theirs + "pre_mlp_layernorm.weight", {12});
    build.same(ours + "ffn_junction.y_norm.weight", theirs + "siamese_mlp_pre_norm.weight", {12});
    build.same(ours + "ffn_junction.input_norm.weight", theirs + "siamese_mlp_input_norm.weight", {12});
  }
  build.same("close.x_norm.weight", "model.siamese_post_final_layernorm.weight", {12});
  build.same("close.y_norm.weight", "model.siamese_pre_final_layernorm.weight", {12});
  build.same("close.norm.weight", "model.norm.weight", {12});
  build.same("head.weight", "lm_head.weight", {11, 12});
  return sample;
}

// What OLMo 3 has beside its tensors: a window in every other block, and longer positions in the others.
void add_layers(Sample& sample) {
  sample.config.norm_eps = 1e-6;
  sample.config.window = 9;
  sample.config.window_pattern = "SF";
  sample.config.rope_scaling = "yarn(factor=4, context=64)";
  sample.config.rope_scaling_layers = models::RopeScalingLayers::full;
  sample.said.insert({{"window", "9"},
                      {"window_pattern", "SF"},
                      {"rope_scaling", sample.config.rope_scaling},
                      {"rope_scaling_layers", "full"}});
}

Sample hf_olmo3(at::ScalarType dtype) {
  Sample sample = hf_olmo2(dtype);
  sample.name = "hf-olmo3";
  sample.layout = Layout::hf_olmo3;
  add_layers(sample);
  return sample;
}

Sample archspace_olmo3(at::ScalarType dtype) {
  Sample sample = hf_siamese(models::AttentionNormChoice::qk_full, dtype);
  sample.name = "archspace-olmo3";
  sample.layout = Layout::archspace_olmo3;
  add_layers(sample);
  sample.config.depth_attention_stride = 8;
  sample.config.depth_attention_recent = 1;
  sample.said.insert({{"depth_attention_stride", "8"}, {"depth_attention_recent", "1"}});
  return sample;
}

// Our names; config.json says all the rest.
Sample hf(at::ScalarType dtype) {
  Sample sample{"hf", Layout::hf};
  sample.config = text_config("siamese(form=write)", false);
  sample.said = {{"rope_theta", "5000"},
                 {"heads", "6"},
                 {"residual", "siamese(form=write)"},
                 {"norm", "rms"},
                 {"norm_eps", "1e-05"}};
  sample.assumed = {"model.context"};
  Builder build(sample, dtype);
  const auto own = [&](const std::string& name, const Shape& shape) { build.same(name, name, shape); };
  own("embedding.weight", {11, 12});
  for (int64_t n = 0; n < 2; ++n) {
    const std::string block = block_name("blocks.", n, ".");
    own(block + "attention.qkv.weight", {20, 12});
    own(block + "attention.out.weight", {12, 12});
    own(block + "ffn.in.weight", {14, 12});
    own(block + "ffn.out.weight", {12, 7});
    for (const std::string junction : {"attention_junction.", "ffn_junction."}) {
      for (const std::string norm : {"x_norm", "y_norm", "input_norm"}) own(block + junction + norm + ".weight", {12});
    }
  }
  own("close.y_norm.weight", {12});
  own("head.weight", {11, 12});
  return sample;
}

}  // namespace

std::vector<Sample> all_samples(at::ScalarType dtype) {
  std::vector<Sample> samples = {official_lm(true, dtype),
                                 official_lm(false, dtype),
                                 official_deit(dtype),
                                 official_dit(true, dtype),
                                 official_dit(false, dtype),
                                 hf_olmo2(dtype),
                                 hf_gpt2(dtype),
                                 hf(dtype),
                                 hf_olmo3(dtype),
                                 archspace_olmo3(dtype)};
  for (const auto norm : {models::AttentionNormChoice::scheme, models::AttentionNormChoice::qk,
                          models::AttentionNormChoice::qk_full, models::AttentionNormChoice::none}) {
    samples.push_back(hf_siamese(norm, dtype));
  }
  for (Sample& sample : llama_samples(dtype)) samples.push_back(std::move(sample));
  for (Sample& sample : samples) models::resolve(sample.config, {});
  return samples;
}

Sample sample_named(const std::string& name, at::ScalarType dtype) {
  for (Sample& sample : all_samples(dtype)) {
    if (sample.name == name) return sample;
  }
  throw std::runtime_error("no sample " + name);
}

}  // namespace siamese::formats
