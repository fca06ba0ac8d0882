#include "tests/cli/command.h"
#include <nlohmann/json.hpp>

#include "siamese/io/safetensors.h"

namespace siamese::cli {
namespace {

class ProbeVerb : public CommandTest {
 protected:
  ProbeVerb() {
    std::vector<int64_t> tokens(2 * 40);  // more than model.context: rotary positions have no end
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int64_t>(i * i % 13);
    write_tensors("in.safetensors", {{"tokens", io::DType::i64, {2, 40}, bytes_of(tokens), 8 * tokens.size()}});
  }
  template <class T>
  static const std::byte* bytes_of(const std::vector<T>& values) {
    return reinterpret_cast<const std::byte*>(values.data());
  }
  void write_tensors(const std::string& name, const std::vector<io::TensorView>& tensors) const {
    io::write_safetensors(folder / name, tensors, {});
  }
  io::SafetensorsFile open(const std::string& name) const { return io::SafetensorsFile::open(folder / name); }
};

TEST_F(ProbeVerb, OfACheckpointInFloatAndDouble) {
  ASSERT_EQ(run(tiny + "--out run").exit_code, 0);
  const CommandResult result = run("probe run --inputs in.safetensors --grad --activations --out single.safetensors");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.out.find("run/step6: siamese, float32"), std::string::npos) << result.out;
  ASSERT_EQ(run("probe run --inputs in.safetensors --grad --activations --double --out double.safetensors").exit_code,
            0);
  const auto single = open("single.safetensors"), exact = open("double.safetensors");
  const auto weights = open("run/step6/model.safetensors");
  for (const auto& view : weights.tensors()) {
    ASSERT_NE(single.find("grad/" + view.name), nullptr) << view.name;
    EXPECT_EQ(single.find("grad/" + view.name)->shape, view.shape);
  }
  ASSERT_EQ(single.tensors().size(), exact.tensors().size());
  for (const auto& view : exact.tensors()) {
    EXPECT_EQ(view.dtype, io::DType::f64) << view.name;
    const io::TensorView* const rounded = single.find(view.name);
    ASSERT_NE(rounded, nullptr) << view.name;
    EXPECT_EQ(rounded->dtype, io::DType::f32);
    const auto* const a = reinterpret_cast<const float*>(rounded->data);
    const auto* const b = reinterpret_cast<const double*>(view.data);
    double largest = 0, worst = 0;
    for (size_t i = 0; i < view.bytes / 8; ++i) {
      largest = std::max(largest, std::abs(b[i]));
      worst = std::max(worst, std::abs(a[i] - b[i]));
    }
    EXPECT_LE(worst, 1e-4 * (largest + 1e-3)) << view.name;
  }
  EXPECT_EQ(exact.find("output")->shape, (std::vector<int64_t>{2, 40, 16}));
  EXPECT_NE(exact.find("site/3/stream_normed/Y"), nullptr);
}

TEST_F(ProbeVerb, OfAConfig) {
  const std::string probe =
      "probe arithmetic-small model.width=16 model.blocks=1 model.heads=2 --inputs in.safetensors ";
  const CommandResult result = run(probe + "--out out.safetensors");
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.out.find("fresh weights of train.seed"), std::string::npos) << result.out;
  EXPECT_EQ(open("out.safetensors").find("grad/embedding.weight"), nullptr);
}

TEST_F(ProbeVerb, RefusesInOneLine) {
  ASSERT_EQ(run(tiny + "--out run").exit_code, 0);
  expect_refusal("probe run --inputs none.safetensors --out o.safetensors", 3, "none.safetensors");
  expect_refusal("probe run --inputs run/step6/model.safetensors --out o.safetensors", 3, "missing tokens");
  expect_refusal("probe run model.width=8 --inputs in.safetensors --out o.safetensors", 2, "model.width=8");
  expect_refusal("probe run --inputs in.safetensors --out in.safetensors", 2, "inputs itself");
  expect_refusal("probe run --inputs in.safetensors --out run/step6/model.safetensors", 2, "lies in the checkpoint");
  expect_refusal("probe arithmetic-small init.from=run --inputs in.safetensors --out o.safetensors", 2, "init.from");
  expect_refusal("probe nothing --inputs in.safetensors --out o.safetensors", 2, "nothing");
  expect_refusal("probe run --inputs in.safetensors --out no/where/o.safetensors", 1, "no/where");
  EXPECT_FALSE(exists("o.safetensors"));
}

TEST_F(ProbeVerb, InspectShowsWhatAFileHolds) {
  ASSERT_EQ(run(tiny + "--out run").exit_code, 0);
  const CommandResult text = run("inspect run");
  ASSERT_EQ(text.exit_code, 0) << text.error;
  for (const char* const part : {"scheme      siamese\n", "embedding.weight", "[16, 16]", "not finite", "F32"}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << part << "\n" << text.out;
  }
  for (const char* const path : {"run/step6", "run/step6/model.safetensors", "run/step6/optim.safetensors"}) {
    EXPECT_EQ(run(std::string("inspect ") + path).exit_code, 0) << path;
  }
  const auto json = nlohmann::json::parse(run("inspect run --json").out);
  EXPECT_EQ(json["residual"], "siamese");
  EXPECT_EQ(json["parameters"], nlohmann::json::parse(read("run/run.json"))["parameters"]);
  EXPECT_EQ(json["tensors"][0]["not_finite"], 0);
  EXPECT_NE(run("inspect run/step6/optim.safetensors").out.find("elements "), std::string::npos);
  write("config.yaml", "d_model: 16\n");  // of another program, beside a file of somebody's
  const float one = 1;
  const auto* const bytes = reinterpret_cast<const std::byte*>(&one);
  io::write_safetensors(folder / "odd.safetensors",
                        std::vector<io::TensorView>{{"a\x1b[2J", io::DType::f32, {1}, bytes, 4}}, {{"format", "pt"}});
  const CommandResult odd = run("inspect odd.safetensors");
  EXPECT_EQ(odd.exit_code, 0) << odd.error;
  EXPECT_NE(odd.out.find("layout      not said"), std::string::npos) << odd.out;
  EXPECT_EQ(odd.out.find('\x1b'), std::string::npos);
  expect_refusal("inspect in", 3, "in");
  write("bad.safetensors", "not at all");
  expect_refusal("inspect bad.safetensors", 3, "bad.safetensors");
}

}  // namespace
}  // namespace siamese::cli
