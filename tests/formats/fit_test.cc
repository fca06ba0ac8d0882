// What does not belong together is named, all of it.
#include "siamese/formats/fit.h"

#include "tests/formats/support.h"

#include "siamese/formats/names.h"

namespace siamese::formats {
namespace {

class Fit : public FormatsTest {
 protected:
  std::vector<std::string> check(const Sample& sample, const Tensors& tensors) {
    const auto file = stored(tensors);
    return check_fit(StoredTensors(file, sample.layout), mappings(sample.layout, sample.config));
  }
};

TEST_F(Fit, ListsMissingUnknownAndMisshapenInTheirNames) {
  for (const Sample& sample : all_samples()) {
    const std::string gone = sample.theirs[5].name;
    const std::string bent = sample.theirs[6].name;
    Tensors tensors = without(without(sample.theirs, gone), bent);
    tensors = with(with(tensors, bent, at::ones({2, 77})), "model.layers.0.surprise", at::ones({1}));
    expect_refused<DataError>([&] { check(sample, tensors); },
                              {std::string(enum_text(sample.layout)), "missing " + gone,
                               "unknown model.layers.0.surprise", bent + ": expected [", "], got [2, 77]"});
  }
}

TEST_F(Fit, ThirtyNamesAreListedAndNinetyGrouped) {
  const Sample sample = sample_named("hf-siamese scheme");
  Tensors tensors;
  Tensors moments;
  std::vector<std::string> gone;
  std::vector<std::string> grouped;
  for (const auto& tensor : sample.theirs) {
    if (tensor.name.starts_with("model.layers.")) {
      gone.push_back(tensor.name);
      const size_t after = tensor.name.find('.', 13);
      for (const std::string prefix : {"grad/", "m.", "v."}) {
        grouped.push_back(prefix + "model.layers.{0,1}" + tensor.name.substr(after));
      }
    } else {
      tensors.push_back(tensor);
      for (const std::string prefix : {"grad/", "m.", "v."}) moments.push_back({prefix + tensor.name, tensor.value});
    }
  }
  ASSERT_EQ(gone.size(), 30U);
  expect_refused<DataError>([&] { check(sample, tensors); }, gone);
  expect_refused<DataError>([&] { check(sample, moments); }, {grouped[0], grouped[3], " more"});
}

TEST_F(Fit, NumbersThatAreNoBlocksAreUnknown) {
  const Sample sample = sample_named("hf-llama");
  for (const std::string name : {"model.layers.00.input_layernorm.weight", "model.layers.2.input_layernorm.weight",
                                 "model.layers.-1.input_layernorm.weight", "model.layers.0.input_layernorm.bias",
                                 "model.layers.0.input_layernorm.weight.", "model..norm.weight"}) {
    expect_refused<DataError>([&] { check(sample, with(sample.theirs, name, at::ones({12}))); }, {"unknown " + name});
  }
}

TEST_F(Fit, PartsOfOneTensorHaveOneDtype) {
  const Sample sample = sample_named("hf-llama");
  const std::string name = "model.layers.1.self_attn.k_proj.weight";
  const Tensors tensors = with(without(sample.theirs, name), name, at::ones({4, 12}, at::kBFloat16));
  expect_refused<DataError>([&] { check(sample, tensors); },
                            {"'model.layers.1.self_attn.q_proj.weight' F32", "'" + name + "' BF16"});
  const Tensors counted =
      with(without(sample.theirs, "model.norm.weight"), "model.norm.weight", at::ones({12}, at::kLong));
  expect_refused<DataError>([&] { check(sample, counted); }, {"'model.norm.weight' I64, not of a floating-point type"});
}

TEST_F(Fit, TablesOfOldFilesAreLeftOut) {
  const Sample gpt2 = sample_named("hf-gpt2");
  Tensors tensors = with(gpt2.theirs, "transformer.h.1.attn.bias", at::ones({1, 1, 8, 8}, at::kBool));
  tensors = with(tensors, "transformer.h.0.attn.masked_bias", at::ones({}));
  const auto notes = check(gpt2, tensors);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_NE(notes[0].find("transformer.h.1.attn.bias"), std::string::npos) << notes[0];
  const Sample llama = sample_named("hf-llama");
  EXPECT_EQ(check(llama, with(llama.theirs, "model.layers.1.self_attn.rotary_emb.inv_freq", at::ones({1}))).size(), 1U);
  expect_refused<DataError>([&] { check(gpt2, with(gpt2.theirs, "transformer.h.1.attn.biases", at::ones({1}))); },
                            {"unknown transformer.h.1.attn.biases"});
}

TEST_F(Fit, ATableThatIsNotStoredIsTold) {
  const Sample sample = sample_named("official-dit");
  EXPECT_TRUE(check(sample, sample.theirs).empty());
  const auto notes = check(sample, without(sample.theirs, "pos_embed"));
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_TRUE(notes[0].starts_with("pos_embed: a fixed table, not stored")) << notes[0];
}

TEST_F(Fit, OldGpt2FilesLackThePrefix) {
  const Sample sample = sample_named("hf-gpt2");
  Tensors tensors;
  for (const auto& tensor : sample.theirs) tensors.push_back({tensor.name.substr(12), tensor.value});
  tensors = with(tensors, "h.0.attn.bias", at::ones({1, 1, 8, 8}));
  const auto file = stored(tensors);
  EXPECT_EQ(text_of(inferred(file, sample.layout, sample.said)), text_of(sample.config));
  expect_tensors(converted(file, sample.layout, Layout::siamese, sample.config), sample.ours, "short names");
  expect_refused<DataError>([&] { check(sample, without(tensors, "h.1.ln_1.weight")); }, {"missing h.1.ln_1.weight"});
  expect_refused<DataError>([&] { check(sample, with(tensors, "h.0.ln_3.weight", at::ones({1}))); },
                            {"unknown h.0.ln_3.weight"});
}

TEST_F(Fit, AHeadThatRepeatsTheEmbeddingIsTied) {
  for (const char* const name : {"hf-llama tied", "hf-gpt2"}) {
    const Sample sample = sample_named(name);
    const at::Tensor embedding = sample.theirs.front().value;
    const auto notes = check(sample, with(sample.theirs, "lm_head.weight", embedding.clone()));
    ASSERT_EQ(notes.size(), 1U);
    EXPECT_NE(notes[0].find("lm_head.weight: equal to the embedding"), std::string::npos) << notes[0];
    at::Tensor other = embedding.clone();
    other[3][2] += 1;
    expect_refused<DataError>([&] { check(sample, with(sample.theirs, "lm_head.weight", other)); },
                              {"unknown lm_head.weight (model.tied is true, and it differs"});
  }
}

TEST_F(Fit, WeightsAndGroupsDoNotMix) {
  const Sample sample = sample_named("hf-llama");
  expect_refused<DataError>([&] { check(sample, with(sample.theirs, "m.model.norm.weight", at::ones({12}))); },
                            {"expected weights, or gradients", "model.norm.weight"});
  expect_refused<DataError>([&] { check(sample, with(sample.theirs, "loss", at::ones({}))); }, {"unknown loss"});
  Tensors gradients;
  for (const auto& tensor : sample.theirs) gradients.push_back({"grad/" + tensor.name, tensor.value});
  expect_refused<DataError>([&] { check(sample, without(gradients, "grad/model.norm.weight")); },
                            {"missing grad/model.norm.weight"});
}

TEST(Names, MatchAndFill) {
  const auto parts = match_name("a.*.b.+", "a.12.b.bias");
  ASSERT_TRUE(parts.has_value());
  EXPECT_EQ(parts->number, 12);
  EXPECT_EQ(fill_name("x.*.+", *parts), "x.12.bias");
  for (const char* const name : {"a.1.b", "a.1.b.gain", "a.01.b.bias", "a.x.b.bias", "a.1.b.bias.c", "a.1.b.bias.", "",
                                 "a.9999999999.b.bias", "b.1.b.bias"}) {
    EXPECT_FALSE(match_name("a.*.b.+", name).has_value()) << name;
  }
}

TEST(Names, LongListsAreGroupedThenCounted) {
  EXPECT_EQ(listed_names({"a.0.x", "a.1.x"}), "a.0.x, a.1.x");
  EXPECT_EQ(listed_names({"a.0.x", "a.1.x", "b", "c.3.y"}, 20), "a.{0,1}.x, b, c.3.y");
  EXPECT_EQ(listed_names({"a.0.x", "a.1.x", "b", "c.3.y"}, 10), "a.{0,1}.x, b and 1 more");
}

}  // namespace
}  // namespace siamese::formats
