#include "tests/formats/sample_builder.h"

namespace siamese::formats {
namespace {

Sample hf_llama_like(const std::string& name, Layout layout, bool tied, at::ScalarType dtype) {
  Sample sample{name, layout};
  sample.config = text_config("pre", tied);
  sample.config.norm_eps = 1e-6;
  sample.config.qkv_bias = layout == Layout::hf_qwen2;
  if (tied) sample.config.kv_heads = 6;
  sample.said = {{"rope_theta", "5000"}, {"heads", "6"}};
  sample.assumed = {"model.norm_eps", "model.context"};
  Builder build(sample, dtype);
  build.same("embedding.weight", "model.embed_tokens.weight", {11, 12});
  for (int64_t n = 0; n < 2; ++n) {
    const std::string ours = block_name("blocks.", n, ".");
    const std::string theirs = block_name("model.layers.", n, ".");
    hf_sublayers(build, ours, theirs, tied ? 12 : 4);
    if (layout == Layout::hf_qwen2) {
      build.rows(ours + "attention.qkv.bias",
                 {{theirs + "self_attn.q_proj.bias", 12},
                  {theirs + "self_attn.k_proj.bias", 4},
                  {theirs + "self_attn.v_proj.bias", 4}},
                 0);
    }
    build.same(ours + "attention_junction.norm.weight", theirs + "input_layernorm.weight", {12});
    build.same(ours + "ffn_junction.norm.weight", theirs + "post_attention_layernorm.weight", {12});
  }
  build.same("close.norm.weight", "model.norm.weight", {12});
  if (!tied) build.same("head.weight", "lm_head.weight", {11, 12});
  return sample;
}

// Heads of width 4: of a narrower one no order could be told from another.
Sample meta_llama(at::ScalarType dtype) {
  Sample sample{"meta-llama", Layout::meta_llama};
  sample.config = text_config("pre", false);
  sample.config.heads = 3;
  sample.config.kv_heads = 1;
  sample.said = {{"rope_theta", "5000"}, {"heads", "3"}};
  sample.assumed = {"model.norm_eps", "model.context"};
  Builder build(sample, dtype);
  build.same("embedding.weight", "tok_embeddings.weight", {11, 12});
  for (int64_t n = 0; n < 2; ++n) {
    const std::string ours = block_name("blocks.", n, ".");
    const std::string theirs = block_name("layers.", n, ".");
    build.paired_rows(ours + "attention.qkv.weight",
                      {{theirs + "attention.wq.weight", 12},
                       {theirs + "attention.wk.weight", 4},
                       {theirs + "attention.wv.weight", 4}},
                      12);
    build.same(ours + "attention.out.weight", theirs + "attention.wo.weight", {12, 12});
    build.rows(ours + "ffn.in.weight", {{theirs + "feed_forward.w3.weight", 7}, {theirs + "feed_forward.w1.weight", 7}},
               12);
    build.same(ours + "ffn.out.weight", theirs + "feed_forward.w2.weight", {12, 7});
    build.same(ours + "attention_junction.norm.weight", theirs + "attention_norm.weight", {12});
    build.same(ours + "ffn_junction.norm.weight", theirs + "ffn_norm.weight", {12});
  }
  build.same("close.norm.weight", "norm.weight", {12});
  build.same("head.weight", "output.weight", {11, 12});
  return sample;
}

}  // namespace

std::vector<Sample> llama_samples(at::ScalarType dtype) {
  Sample scaled = hf_llama_like("hf-llama scaled", Layout::hf_llama, false, dtype);
  scaled.config.rope_scaling = "yarn(factor=4, context=64, beta_fast=16)";
  scaled.said["rope_scaling"] = scaled.config.rope_scaling;
  return {hf_llama_like("hf-llama", Layout::hf_llama, false, dtype),
          hf_llama_like("hf-llama tied", Layout::hf_llama, true, dtype),
          scaled,
          hf_llama_like("hf-qwen2", Layout::hf_qwen2, false, dtype),
          hf_llama_like("hf-mistral", Layout::hf_mistral, false, dtype),
          meta_llama(dtype)};
}

}  // namespace siamese::formats
