// `siamese convert` as a user would run it: trained models out and back in, files of others, and what is refused.
#include <map>
#include <vector>

#include "tests/cli/command.h"
#include <nlohmann/json.hpp>

#include "siamese/io/tensor_files.h"

namespace siamese::cli {
namespace {

using Json = nlohmann::json;

class ConvertVerb : public CommandTest {
 protected:
  struct Bytes {
    io::DType dtype;
    std::vector<int64_t> shape;
    std::string data;
    bool operator==(const Bytes&) const = default;
  };
  using Contents = std::map<std::string, Bytes>;

  Contents contents(const std::string& name) const {
    const auto files = io::TensorFiles::open(folder / name);
    Contents all;
    for (const auto& view : files.tensors()) {
      all[view.name] = {view.dtype, view.shape, {reinterpret_cast<const char*>(view.data), view.bytes}};
    }
    return all;
  }
  std::map<std::string, std::string> metadata(const std::string& name) const {
    return io::TensorFiles::open(folder / name).metadata();
  }
  void put(const std::string& name, const Contents& tensors,
           const std::map<std::string, std::string>& metadata_text = {}) const {
    std::vector<io::TensorView> views;
    for (const auto& [tensor, bytes] : tensors) {
      views.push_back(
          {tensor, bytes.dtype, bytes.shape, reinterpret_cast<const std::byte*>(bytes.data.data()), bytes.data.size()});
    }
    io::write_safetensors(folder / name, views, metadata_text);
  }
  // The config of a run as it stands beside weights: how many samples a pass has is left to the next run.
  std::string config_of(const std::string& checkpoint) const {
    std::string text = read(checkpoint + "/config.yaml");
    const std::string key = "  micro_batch: ";
    const size_t at = text.find(key) + key.size();
    return text.replace(at, text.find('\n', at) - at, "0");
  }
  // The same tensors as a stranger would have them: no metadata.
  void put_bare(const std::string& from, const std::string& to) const { put(to, contents(from)); }

  void train(const std::string& overrides, const std::string& out) const {
    const CommandResult result = run(tiny + "--quiet --out " + out + " " + overrides);
    ASSERT_EQ(result.exit_code, 0) << result.error;
  }
  Json converted(const std::string& arguments) const {
    const CommandResult result = run("convert " + arguments + " --json");
    EXPECT_EQ(result.exit_code, 0) << arguments << "\n" << result.error;
    return result.exit_code == 0 ? Json::parse(result.out) : Json::object();
  }
  std::string eval_of(const std::string& name) const {
    const CommandResult result = run("eval " + name + " --json");
    EXPECT_EQ(result.exit_code, 0) << name << result.error;
    Json found = result.exit_code == 0 ? Json::parse(result.out) : Json::object();
    found.erase("step");      // a folder of weights has none
    found.erase("checksum");  // of a line that says the step
    return found.dump();
  }
};

TEST_F(ConvertVerb, ARunGoesOutAndComesBack) {
  const std::pair<const char*, const char*> cases[] = {
      {"hf-llama", "model.residual=pre model.heads=4 model.kv_heads=2 model.tied=false"},
      {"hf-olmo2", "model.residual=olmo2"},
      {"hf-olmo3", "model.residual=olmo2 model.window=3 model.window_pattern=SF"},
      {"archspace-olmo3",
       "'model.residual=siamese(x=hybrid)' model.attention_norm=qk_full model.depth_attention_stride=8 model.window=3 "
       "model.window_pattern=SF 'model.rope_scaling=yarn(factor=4, context=8)' model.rope_scaling_layers=full"},
      {"hf-gpt2", "model.residual=pre model.norm=layer model.bias=true model.ffn=gelu_tanh model.positions=learned"},
      {"hf-siamese", "'model.residual=siamese(x=hybrid)'"},
      {"hf", "'model.residual=siamese(form=write, depth_scale=layer)' model.norm=layer model.bias=true"},
      {"official-lm", "'model.residual=siamese(x=hybrid)' model.tied=false"}};
  for (const auto& [layout, model] : cases) {
    const std::string name(layout);
    train(model, "run-" + name);
    const Json out = converted("run-" + name + " --from siamese --to " + name + " -o out-" + name);
    EXPECT_EQ(out["source"], "run-" + name + "/step6/model.safetensors");
    EXPECT_EQ(out["assumed"], Json::array());
    EXPECT_EQ(metadata("out-" + name).at("layout"), name);
    EXPECT_EQ(metadata("out-" + name).at("format"), "pt");
    EXPECT_EQ(exists("out-" + name + "/config.json"), !name.starts_with("official"));
    EXPECT_EQ(read("out-" + name + "/config.yaml"), config_of("run-" + name + "/step6"));
    converted("out-" + name + " --from " + name + " --to siamese -o back-" + name);
    EXPECT_EQ(contents("back-" + name), contents("run-" + name + "/step6")) << name;
    EXPECT_EQ(read("back-" + name + "/config.yaml"), config_of("run-" + name + "/step6"));
    if (name == "hf-llama") {
      EXPECT_EQ(eval_of("back-" + name), eval_of("run-" + name));
    }
    // The moments by the same map.
    converted("run-" + name + "/step6/optim.safetensors --from siamese --to " + name +
              " -o moments.safetensors --overwrite");
    converted("moments.safetensors --from " + name + " --to siamese -o ours.safetensors --overwrite");
    EXPECT_EQ(contents("ours.safetensors"), contents("run-" + name + "/step6/optim.safetensors")) << name;
    EXPECT_EQ(contents("moments.safetensors") == contents("ours.safetensors"), name == "hf");  // whose names are ours
    // What a stranger's folder tells.
    if (name.starts_with("hf")) {
      std::filesystem::create_directories(folder / ("bare-" + name));
      put_bare("out-" + name, "bare-" + name + "/model.safetensors");
      std::filesystem::copy(folder / ("out-" + name) / "config.json", folder / ("bare-" + name) / "config.json");
      const Json bare = converted("bare-" + name + " --from " + name + " --to siamese -o stranger-" + name);
      EXPECT_EQ(bare["assumed"], Json::array()) << bare;
      EXPECT_EQ(contents("stranger-" + name), contents("run-" + name + "/step6")) << name;
      const std::string config = read("stranger-" + name + "/config.yaml");
      EXPECT_EQ(config.substr(0, config.find("init:")),
                read("back-" + name + "/config.yaml").substr(0, config.find("init:")));
      EXPECT_NE(config.find("  source: random\n"), std::string::npos);
    }
  }
}

TEST_F(ConvertVerb, AFolderForTransformersCarriesItsCodeAndTokenizer) {
  train("model.residual=pre", "run");
  write("run/step6/tokenizer.json", "{\"version\": \"1.0\"}");
  converted("run --from siamese --to hf -o out");
  const Json config = Json::parse(read("out/config.json"));
  EXPECT_EQ(config["auto_map"]["AutoConfig"], "configuration_siamese.SiameseConfig");
  EXPECT_EQ(config["auto_map"]["AutoModelForCausalLM"], "modeling_siamese.SiameseForCausalLM");
  EXPECT_EQ(config["model"]["residual"], "pre");
  EXPECT_EQ(config["model"]["norm_eps"], 1e-5);
  EXPECT_EQ(config["model"]["tied"], true);
  for (const std::string name : {"configuration_siamese.py", "modeling_siamese.py"}) {
    const std::string text = slurp(std::string(SIAMESE_CONFIG_FOLDER) + "/../python/siamesenorm/hf/" + name);
    EXPECT_FALSE(text.empty());
    EXPECT_TRUE(read("out/" + name) == text) << name;
  }
  EXPECT_EQ(read("out/tokenizer.json"), read("run/step6/tokenizer.json"));
  EXPECT_NE(read("out/tokenizer_config.json").find("PreTrainedTokenizerFast"), std::string::npos);
  converted("run --from siamese --to hf -o out --overwrite");  // all of it is what convert writes
  EXPECT_EQ(eval_of("out"), eval_of("run"));
  // As transformers saves it again: no config.yaml, no metadata of ours.
  std::filesystem::remove(folder / "out/config.yaml");
  put_bare("out", "bare.safetensors");
  std::filesystem::rename(folder / "bare.safetensors", folder / "out/model.safetensors");
  converted("out --from hf --to siamese -o back");
  EXPECT_EQ(contents("back"), contents("run/step6"));
  write("out/config.json", R"({"model_type": "siamesenorm", "model": {"width": [1]}})");
  expect_refusal("convert out --from hf --to siamese -o x", 3,
                 "model.width: expected a number, text, true, false or a section");
  write("out/config.json", R"({"model_type": "siamesenorm"})");
  expect_refusal("convert out --from hf --to siamese -o x", 3, "model: expected the model section");
  train("model.residual=peri", "peri");
  expect_refusal(
      "convert peri --from siamese --to hf -o x", 2,
      "model.residual: expected pre or siamese, with any options, for layout hf, got peri: the Python package "
      "siamesenorm loads a model of any scheme into transformers");
}

TEST_F(ConvertVerb, ImagesComeInFromBareFiles) {
  const std::string few =
      " train.steps=1 train.batch=2 eval.batches=1 engine.threads=1 model.width=48 model.blocks=2 model.heads=2 "
      "model.residual=siamese --quiet --out ";
  ASSERT_EQ(run("train vit-micro" + few + "vit").exit_code, 0);
  ASSERT_EQ(run("train dit-micro" + few + "dit").exit_code, 0);
  for (const std::string family : {"vit", "dit"}) {
    const std::string layout = family == "vit" ? "official-deit" : "official-dit";
    converted(family + " --from siamese --to " + layout + " -o theirs.safetensors --overwrite");
    put_bare("theirs.safetensors", "bare.safetensors");
    expect_refusal("convert bare.safetensors --from " + layout + " --to siamese -o in", 2,
                   "model.heads: the tensors do not tell it; give model.heads=..., or --config");
    const CommandResult result =
        run("convert bare.safetensors --from " + layout + " --to siamese -o in-" + family + " model.heads=2");
    ASSERT_EQ(result.exit_code, 0) << result.error;
    EXPECT_NE(result.out.find("model.norm_eps 1e-06: documented for " + layout), std::string::npos) << result.out;
    EXPECT_EQ(contents("in-" + family), contents(family + "/step1"));
    const std::string config = read("in-" + family + "/config.yaml");
    EXPECT_NE(config.find("  source: random\n"), std::string::npos);
    EXPECT_EQ(run("config check in-" + family + "/config.yaml").exit_code, 0);
    // The same from --config instead.
    converted("bare.safetensors --from " + layout + " --to siamese -o again-" + family + " --config " + family);
    EXPECT_EQ(read("again-" + family + "/config.yaml"), config_of(family + "/step1"));
  }
}

TEST_F(ConvertVerb, ShardsAndOneFile) {
  train("model.residual=pre", "run");
  converted("run --from siamese --to hf-llama -o shards --shard-size 2KB");
  EXPECT_TRUE(exists("shards/model.safetensors.index.json"));
  EXPECT_FALSE(exists("shards/model.safetensors"));
  converted("run/step4 --from siamese --to hf-llama -o other.safetensors");
  converted("run/step6/model.safetensors --from siamese --to hf-llama -o one.safetensors");
  EXPECT_EQ(contents("one.safetensors"), contents("shards"));
  EXPECT_NE(contents("one.safetensors"), contents("other.safetensors"));
  // A file of ours stands alone: its metadata has the model.
  const Json back = converted("one.safetensors --from hf-llama --to siamese -o back");
  EXPECT_EQ(back["assumed"], Json::array());
  EXPECT_EQ(back["dtypes"], Json({{"F32", contents("run/step6").size()}}));
  EXPECT_EQ(contents("back"), contents("run/step6"));
  converted("shards/model.safetensors.index.json --from hf-llama --to siamese -o back --overwrite --shard-size 1KiB");
  EXPECT_EQ(contents("back"), contents("run/step6"));
  // A result with shards and a config.json is replaced as well, and nothing of it is left.
  converted("run --from siamese --to siamese -o shards --overwrite");
  EXPECT_FALSE(exists("shards/config.json"));
  EXPECT_FALSE(exists("shards/model.safetensors.index.json"));
  EXPECT_EQ(contents("shards"), contents("run/step6"));
}

TEST_F(ConvertVerb, WhoSaysWhat) {
  train("model.residual=pre model.norm_eps=0.003", "run");
  converted("run --from siamese --to hf-llama -o out");
  std::filesystem::create_directories(folder / "bare");
  put_bare("out", "bare/model.safetensors");
  const auto eps = [&](const std::string& more) {
    const CommandResult result = run("convert bare --from hf-llama --to siamese -o in --overwrite " + more);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    const std::string config = read("in/config.yaml");
    const size_t at = config.find("norm_eps: ") + 10;
    return config.substr(at, config.find('\n', at) - at);
  };
  expect_refusal("convert bare --from hf-llama --to siamese -o in", 2,
                 "model.heads, model.rope_theta: the tensors do not tell them; give model.heads=... "
                 "model.rope_theta=..., or --config");
  EXPECT_EQ(eps("model.heads=2 model.rope_theta=10000"), "1e-06");
  put("bare/model.safetensors", contents("out"), {{"model", "norm_eps: 0.006\n"}});
  EXPECT_EQ(eps("model.heads=2 model.rope_theta=10000"), "0.006");
  write("bare/config.json", R"({"model_type": "llama", "num_attention_heads": 2, "rms_norm_eps": 0.004})");
  const Json said = converted("bare --from hf-llama --to siamese -o in --overwrite");
  ASSERT_EQ(said["assumed"].size(), 2U) << said;
  EXPECT_EQ(said["assumed"][0]["key"], "model.rope_theta");
  EXPECT_EQ(said["assumed"][1]["key"], "model.context");
  EXPECT_EQ(eps(""), "0.004");
  write("bare/config.yaml", "model: {residual: pre, norm_eps: 0.005}\n");
  EXPECT_EQ(eps(""), "0.005");
  write("part.yaml", "model:\n  norm_eps: 0.007\n");
  EXPECT_EQ(eps("--config part.yaml"), "0.007");
  EXPECT_EQ(eps("--config part.yaml model.norm_eps=0.008"), "0.008");
  EXPECT_EQ(eps("--config run"), "0.003");
  EXPECT_EQ(eps("--config run/step4"), "0.003");
  EXPECT_EQ(eps("--config out/config.json"), "0.003");
  // Somebody else's config.yaml is left alone, and that is said.
  write("bare/config.yaml", "model: {d_model: 16}\n");
  EXPECT_NE(run("convert bare --from hf-llama --to siamese -o in --overwrite").out.find("not a config of siamese"),
            std::string::npos);
}

TEST_F(ConvertVerb, RefusesInOneLine) {
  train("model.residual=pre", "run");
  const std::string out = "convert run --from siamese --to hf-llama ";
  expect_refusal("convert run --from siamese --to nothing -o x", 2, "--to: expected a layout, one of siamese, ");
  expect_refusal("convert run --from sias --to hf-llama -o x", 2, "--from: expected a layout");
  expect_refusal("convert run --from siamese -o x", 2, "--to");
  expect_refusal("convert nowhere --from siamese --to hf-llama -o x", 3, "nowhere");
  expect_refusal(out + "-o ''", 2, "--out: expected");
  expect_refusal(out + "-o x --shard-size 5XB", 2, "--shard-size: expected a size such as 5GB");
  expect_refusal(out + "-o x --shard-size 0", 2, "--shard-size");
  expect_refusal(out + "-o x.safetensors --shard-size 5GB", 2, "--shard-size: shards need a folder");
  expect_refusal(out + "-o x --config nowhere", 2, "nowhere");
  expect_refusal(out + "-o x model.widht=3", 2, "model.widht: unknown key");
  expect_refusal(out + "-o x model=3", 2, "model: expected a map");
  expect_refusal("convert run --from siamese --to hf-olmo2 -o x", 2,
                 "model.residual: expected olmo2 for layout hf-olmo2, got pre");
  expect_refusal("convert run --from siamese --to hf-gpt2 -o x", 2, "for layout hf-gpt2, got swiglu");
  expect_refusal("convert run --from hf-llama --to siamese -o x", 2, "says that its layout is siamese, got hf-llama");
  expect_refusal("convert run/step6/optim.safetensors --from siamese --to hf-llama -o x", 2,
                 "gradients and moments need a file");
  EXPECT_FALSE(exists("x"));

  ASSERT_EQ(run(out + "-o x").exit_code, 0);
  expect_refusal(out + "-o x", 2, "x: exists already; --overwrite replaces it");
  expect_refusal(out + "-o run/step6 --overwrite", 2, "is the source itself");
  expect_refusal(out + "-o run --overwrite", 2, "run: exists already and holds ");
  expect_refusal("convert x --from hf-llama --to siamese -o x --overwrite", 2, "x: is the source itself");
  ASSERT_EQ(run(out + "-o x.safetensors").exit_code, 0);
  expect_refusal(out + "-o x.safetensors", 2, "x.safetensors: exists already; --overwrite replaces it");
  ASSERT_EQ(run(out + "-o x.safetensors --overwrite").exit_code, 0);
  expect_refusal("convert x.safetensors --from hf-llama --to siamese -o x.safetensors --overwrite", 2, "source itself");
  write("note", "text");
  expect_refusal(out + "-o note --overwrite", 2, "note: is a file, not a folder");
  std::filesystem::create_directories(folder / "d.safetensors");
  expect_refusal(out + "-o d.safetensors --overwrite", 2, "is a folder, not a file");

  Contents tensors = contents("x");
  tensors.erase("model.layers.1.mlp.up_proj.weight");
  tensors["model.layers.1.mlp.extra"] = tensors.at("model.norm.weight");
  tensors["model.norm.weight"].shape = {4, 4};
  put("broken.safetensors", tensors, metadata("x"));
  expect_refusal("convert broken.safetensors --from hf-llama --to siamese -o y", 3,
                 "missing model.layers.1.mlp.up_proj.weight; unknown model.layers.1.mlp.extra; misshapen "
                 "model.norm.weight: expected [16], got [4, 4]");
  expect_refusal("convert x --from hf-llama --to siamese -o y model.width=48", 3,
                 "misshapen model.embed_tokens.weight");
  write("x/config.json", R"({"model_type": "llama", "hidden_act": "relu"})");
  expect_refusal("convert x --from hf-llama --to siamese -o y", 3, "x/config.json: hidden_act: expected \"silu\"");
  EXPECT_FALSE(exists("y"));
}

// A flipped bit in a key must not turn the config into one of somebody else's, which would be left aside.
TEST_F(ConvertVerb, ACheckpointsOwnConfigIsReadOrRefused) {
  train("", "run");
  std::string text = read("run/step6/config.yaml");
  text.replace(text.find("residual:"), 9, "residuil:");
  write("run/step6/config.yaml", text);
  expect_refusal("convert run --from siamese --to siamese -o out", 3,
                 "run/step6/config.yaml: model.residual: missing, and every checkpoint names its scheme there");
}

// What is left of a file that was cut is a config, too, with defaults in the place of what is gone.
TEST_F(ConvertVerb, ACheckpointsConfigThatWasCutIsRefused) {
  train("optim.lr=0.004", "run");
  const std::string text = read("run/step6/config.yaml");
  write("run/step6/config.yaml", text.substr(0, text.find("\noptim:") + 1));
  expect_refusal("convert run --from siamese --to siamese -o out", 3,
                 "run/step6/config.yaml: was changed since the checkpoint was saved: optim.lr: was 0.004");
  EXPECT_FALSE(exists("out"));
}

// What tells the sizes may itself be missing: it is listed with the rest.
TEST_F(ConvertVerb, ListsWhatItWouldHaveLookedAt) {
  train("'model.residual=siamese(x=hybrid)'", "run");
  ASSERT_EQ(run("convert run --from siamese --to official-lm -o lm.safetensors").exit_code, 0);
  Contents tensors = contents("lm.safetensors");
  for (const char* const gone : {"transformer.wte.weight", "transformer.blocks.0.q_norm.weight",
                                 "transformer.blocks.0.v_norm.weight", "transformer.blocks.1.ff_out.weight"}) {
    tensors.erase(gone);
  }
  put("broken.safetensors", tensors, {{"format_version", "2"}});
  expect_refusal("convert broken.safetensors --from official-lm --to siamese -o y", 3, "format_version: expected 1");
  put("broken.safetensors", tensors, {});
  expect_refusal("convert broken.safetensors --from official-lm --to siamese -o y model.rope_theta=10000", 3,
                 "missing transformer.wte.weight, transformer.blocks.0.q_norm.weight, "
                 "transformer.blocks.0.v_norm.weight, transformer.blocks.1.ff_out.weight");
  // The layout means norms on q, k and v, also where none is there to tell.
  tensors = contents("lm.safetensors");
  for (const char* const block : {"0", "1"})
    tensors.erase("transformer.blocks." + std::string(block) + ".v_norm.weight");
  put("broken.safetensors", tensors, {});
  expect_refusal("convert broken.safetensors --from official-lm --to siamese -o y model.rope_theta=10000", 3,
                 "missing transformer.blocks.0.v_norm.weight, transformer.blocks.1.v_norm.weight");
}

TEST_F(ConvertVerb, SaysWhatAFileWouldMeanElsewhere) {
  train("model.residual=pre", "run");
  converted("run --from siamese --to hf-llama -o out.safetensors");
  const auto notes = [&](const std::string& more) { return converted(more)["notes"].dump(); };
  EXPECT_NE(notes("out.safetensors --from hf-llama --to siamese -o post model.residual=post")
                .find("model.residual: expected pre for layout hf-llama, got post"),
            std::string::npos);
  train("'model.residual=siamese(x=hybrid)' model.norm_eps=1e-3", "hybrid");
  EXPECT_NE(notes("hybrid --from siamese --to official-lm -o lm.safetensors")
                .find("model.norm_eps: expected 1e-05 for layout official-lm, got 0.001"),
            std::string::npos);
  // Names that only one layout has tell it, and its scheme, also without metadata.
  put("bare_lm.safetensors", contents("lm.safetensors"), {});
  const Json seen = Json::parse(run("inspect --json bare_lm.safetensors").out);
  EXPECT_EQ(seen["layout"], "official-lm");
  EXPECT_EQ(seen["residual"], "siamese(x=hybrid)");
  put("bare_llama.safetensors", contents("out.safetensors"), {});
  EXPECT_EQ(Json::parse(run("inspect --json bare_llama.safetensors").out)["layout"], "hf-llama");
  // Shards are weights alone as well.
  converted("run --from siamese --to siamese -o shards --shard-size 1KiB");
  expect_refusal("resume shards", 3, "nothing to resume");
  for (const auto& entry : std::filesystem::directory_iterator(folder / "shards")) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("model-00001")) continue;
    expect_refusal("convert shards --from siamese --to siamese --overwrite -o shards/" + name, 2, "source itself");
  }
}

TEST_F(ConvertVerb, TellsWhatItDid) {
  train("model.residual=pre", "run");
  const CommandResult result = run("convert run --from siamese --to hf-llama -o deep/er/out");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  for (const char* const words : {"run/step6/model.safetensors (siamese) -> deep/er/out (hf-llama)\n",
                                  "pre, family lm: ", " parameters, 14 tensors -> 20: 20 F32\n"}) {
    EXPECT_NE(result.out.find(words), std::string::npos) << words << "\n" << result.out;
  }
  EXPECT_NE(run("convert --help").out.find("Example: siamese convert"), std::string::npos);
}

}  // namespace
}  // namespace siamese::cli
