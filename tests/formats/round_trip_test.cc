// Every layout, both ways, against tensors written out by hand.
#include <set>

#include "tests/formats/support.h"

namespace siamese::formats {
namespace {

class RoundTrip : public FormatsTest {};

TEST_F(RoundTrip, EveryLayoutBothWaysBitByBit) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const Sample& sample : all_samples(dtype)) {
      const auto theirs = stored(sample.theirs);
      const auto ours = converted(theirs, sample.layout, Layout::siamese, sample.config);
      expect_tensors(ours, sample.ours, sample.name + " to ours");
      const auto back = converted(ours, Layout::siamese, sample.layout, sample.config);
      expect_tensors(back, sample.theirs, sample.name + " back");
      expect_tensors(converted(stored(sample.ours), Layout::siamese, sample.layout, sample.config), sample.theirs,
                     sample.name + " to theirs");
      expect_tensors(converted(theirs, sample.layout, sample.layout, sample.config), sample.theirs,
                     sample.name + " to itself");
      EXPECT_EQ(back.metadata().at("format"), "pt");
      EXPECT_EQ(back.metadata().at("layout"), enum_text(sample.layout));
    }
  }
}

TEST_F(RoundTrip, OurSideIsWhatAModelHas) {
  for (const Sample& sample : all_samples()) {
    std::set<std::string> names;
    for (const auto& tensor : sample.ours) names.insert(tensor.name);
    for (const auto& tensor : models::tensor_list(sample.config)) {
      EXPECT_EQ(names.erase(tensor.name), 1U) << sample.name << ": " << tensor.name;
    }
    EXPECT_TRUE(names.empty()) << sample.name << ": " << *names.begin();
  }
}

TEST_F(RoundTrip, GradientsAndMomentsKeepTheirPrefixes) {
  for (const Sample& sample : all_samples(at::kBFloat16)) {
    const auto grouped = [&](const Tensors& tensors) {
      Tensors all;
      for (const std::string prefix : {"grad/", "m.", "v."}) {
        for (const auto& [name, value, optional] : tensors) {
          // Buffers have neither gradients nor moments.
          if (sample.config.family == models::Family::dit && (name == "positions.weight" || name == "pos_embed"))
            continue;
          all.push_back({prefix + name, value * static_cast<double>(prefix.size())});
        }
      }
      all.push_back({"output", at::ones({2, 3}, at::kDouble)});
      all.push_back({"loss", at::ones({}, at::kFloat)});
      all.push_back({"site/0.attention.X", at::arange(4)});
      all.push_back({"aux/balance", at::ones({1})});
      return all;
    };
    const auto ours = converted(stored(grouped(sample.theirs)), sample.layout, Layout::siamese, sample.config);
    expect_tensors(ours, grouped(sample.ours), sample.name);
    expect_tensors(converted(ours, Layout::siamese, sample.layout, sample.config), grouped(sample.theirs), sample.name);
  }
}

TEST_F(RoundTrip, OneGroupIsEnoughAndWhatAProbeRecordedPasses) {
  const Sample sample = sample_named("hf-gpt2");
  Tensors moments;
  for (const auto& tensor : sample.theirs) moments.push_back({"m." + tensor.name, tensor.value});
  Tensors expected;
  for (const auto& tensor : sample.ours) expected.push_back({"m." + tensor.name, tensor.value});
  expect_tensors(converted(stored(moments), sample.layout, Layout::siamese, sample.config), expected, "m.");
  const Tensors recorded = {{"output", at::ones({2})}, {"loss", at::ones({})}};
  expect_tensors(converted(stored(recorded), sample.layout, Layout::siamese, sample.config), recorded, "probe");
}

TEST_F(RoundTrip, BetweenTwoPublishedLayouts) {
  const Sample lm = sample_named("official-lm untied");
  Sample hf = sample_named("hf-siamese scheme");
  const auto file = converted(stored(lm.theirs), Layout::official_lm, Layout::hf_siamese, lm.config);
  EXPECT_EQ(file.tensors().size(), hf.theirs.size());
  expect_tensors(converted(file, Layout::hf_siamese, Layout::official_lm, lm.config), lm.theirs, "and back");
}

TEST_F(RoundTrip, ShardsHoldTheSame) {
  const Sample sample = sample_named("hf-llama", at::kBFloat16);
  const auto file = stored(sample.theirs);
  const StoredTensors in(file, sample.layout);
  const Converted out = convert(in, Layout::siamese, sample.config);
  io::write_tensor_files(folder_, out.tensors, metadata_of(Layout::siamese, sample.config), 500, out.make);
  const auto shards = io::TensorFiles::open(folder_);
  EXPECT_EQ(shards.path().filename(), "model.safetensors.index.json");
  expect_tensors(shards, sample.ours, "shards");
  expect_tensors(converted(shards, Layout::siamese, sample.layout, sample.config), sample.theirs, "from shards");
}

TEST_F(RoundTrip, BuffersMayBeMissing) {
  Sample sample = sample_named("official-dit");
  const auto file = stored(without(sample.theirs, "pos_embed"));
  expect_tensors(converted(file, sample.layout, Layout::siamese, sample.config),
                 without(sample.ours, "positions.weight"), "dit without positions");
}

TEST_F(RoundTrip, OtherSchemesOfTheSameNamesImport) {
  const Sample sample = sample_named("official-lm");
  models::ModelConfig config = sample.config;
  config.residual = "siamese(x=hybrid, depth_scale=none)";
  models::resolve(config, {});
  expect_tensors(converted(stored(sample.theirs), sample.layout, Layout::siamese, config), sample.ours, "undamped");
  config.residual = "peri";
  expect_refused<UsageError>([&] { converted(stored(sample.theirs), sample.layout, Layout::siamese, config); },
                             {"layout official-lm", "model.residual peri", "open.norm.weight"});
}

TEST_F(RoundTrip, LoadsIntoAModelFromAnyLayout) {
  for (const Sample& sample : all_samples(at::kBFloat16)) {
    const auto file = converted(stored(sample.ours), Layout::siamese, sample.layout, sample.config);
    Tensors model;
    for (const auto& [name, value, optional] : models::tensor_list(sample.config)) {
      model.push_back({name, at::zeros(value.sizes()), optional});
    }
    load_weights(file, sample.config, model);
    for (const auto& tensor : model) {
      siamese::testing::expect_same_bits(tensor.value, value_of(sample.ours, tensor.name).to(at::kFloat),
                                         sample.name + ": " + tensor.name);
    }
    load_weights(stored(sample.ours), sample.config, model);  // without metadata: ours
    EXPECT_EQ(layout_of(file), sample.layout);
  }
  const Sample sample = sample_named("hf-llama");
  expect_refused<DataError>([&] { layout_of(stored(sample.ours, {{"layout", "keras"}})); }, {"unknown layout 'keras'"});
  Tensors few = models::tensor_list(sample.config);
  expect_refused<DataError>(
      [&] {
        load_weights(stored(without(sample.theirs, "model.norm.weight"), {{"layout", "hf-llama"}}), sample.config, few);
      },
      {"hf-llama", "missing model.norm.weight"});
  expect_refused<DataError>(
      [&] {
        load_weights(stored({{"m.model.norm.weight", at::ones(12)}}, {{"layout", "hf-llama"}}), sample.config, few);
      },
      {"expected weights, got gradients or moments"});
}

}  // namespace
}  // namespace siamese::formats
