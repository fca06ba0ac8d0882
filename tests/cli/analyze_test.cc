#include <cstdint>
#include <span>

#include "tests/cli/command.h"
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "siamese/io/safetensors.h"

namespace siamese::cli {
namespace {

class AnalyzeVerb : public CommandTest {
 protected:
  void train(const std::string& name, const std::string& more = "") const {
    ASSERT_EQ(run(tiny + more + " --quiet --out " + name).exit_code, 0);
  }
  nlohmann::json json_of(const std::string& file) const { return nlohmann::json::parse(read(file)); }
};

TEST_F(AnalyzeVerb, WritesWhatItFound) {
  train("x");
  const CommandResult result = run("analyze x --samples 3 --changed-samples 2");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.out.find("x/analysis/step6/analysis.html\n"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("stream Y at the close"), std::string::npos) << result.out;
  const auto record = json_of("x/analysis/step6/analysis.json");
  EXPECT_EQ(record["scheme"], "siamese");
  EXPECT_EQ(record["step"], 6);
  EXPECT_EQ(record["samples"], 3);
  EXPECT_EQ(record["places"].size(), 5U);
  const auto tensors = io::SafetensorsFile::open(folder / "x/analysis/step6/analysis.safetensors");
  ASSERT_NE(tensors.find("stream/X/norm"), nullptr);
  EXPECT_EQ(tensors.find("stream/X/norm")->shape, (std::vector<int64_t>{5, 24}));
  EXPECT_EQ(tensors.find("similarity/cka")->shape, (std::vector<int64_t>{5, 5}));
  EXPECT_NE(read("x/analysis/step6/analysis.html").find("</html>"), std::string::npos);
  EXPECT_TRUE(record["places"][1]["streams"][0]["loss_zeroed"].is_null());  // from where a block begins
  EXPECT_TRUE(record["places"][1]["streams"][0]["branch_cosine"].is_number());
  EXPECT_TRUE(record["effective_depth"].is_number());
  EXPECT_NE(result.out.find("effective depth: "), std::string::npos) << result.out;
  ASSERT_EQ(run("analyze x --samples 1 --all-sites --out sites").exit_code, 0) << read("error.txt");
  EXPECT_TRUE(json_of("sites/analysis.json")["places"][1]["streams"][0]["loss_zeroed"].is_number());
  // The same again, bit by bit; elsewhere, and as JSON.
  const CommandResult again = run("analyze x/step6 --samples 3 --changed-samples 2 --out other --json");
  ASSERT_EQ(again.exit_code, 0) << again.error;
  auto repeated = nlohmann::json::parse(again.out), first = json_of("x/analysis/step6/analysis.json");
  EXPECT_EQ(first["made_by"]["command"], "siamese analyze x --samples 3 --changed-samples 2");
  EXPECT_EQ(first["made_by"]["precision"], "float32");
  EXPECT_GT(first["made_by"]["threads"], 0);
  EXPECT_EQ(first["made_by"]["libtorch"], repeated["made_by"]["libtorch"]);
  EXPECT_EQ(run("analyze x --samples 3 --changed-samples 2").exit_code, 0);
  EXPECT_EQ(json_of("x/analysis/step6/analysis.json"), first);
  for (const char* const key : {"made_by", "checksum"}) {
    EXPECT_EQ(first.erase(key) + repeated.erase(key), 2U) << key;
  }
  EXPECT_EQ(repeated, first);
  EXPECT_EQ(read("other/analysis.safetensors"), read("x/analysis/step6/analysis.safetensors"));
  EXPECT_EQ(first["ranges"].size(), 2U + 1U);
  // What was analysed belongs to the run; anything else in there does not.
  write("x/analysis/step6/mine.txt", "mine");
  expect_refusal(tiny + "--out x --overwrite", 2, "analysis/step6/mine.txt");
  std::filesystem::remove(folder / "x/analysis/step6/mine.txt");
  EXPECT_EQ(run(tiny + "--quiet --out x --overwrite").exit_code, 0);
  EXPECT_FALSE(exists("x/analysis"));
}

TEST_F(AnalyzeVerb, ComparesRunsAndAnalyses) {
  train("pre", "model.residual=pre");
  train("hc", "model.residual='hc(streams=2)'");
  ASSERT_EQ(run("analyze pre --samples 2 --out of_pre").exit_code, 0);
  const CommandResult result = run("analyze --compare of_pre hc --samples 2 --out both");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.out.find("both/analysis.html\n"), std::string::npos) << result.out;
  EXPECT_TRUE(exists("hc/analysis/step6/analysis.json"));
  const std::string page = read("both/analysis.html");
  EXPECT_NE(page.find("2 analyses compared"), std::string::npos);
  EXPECT_NE(page.find("hc(streams=2)"), std::string::npos);
  const CommandResult kept = run("analyze --compare hc of_pre");
  ASSERT_EQ(kept.exit_code, 0) << kept.error;
  EXPECT_NE(kept.error.find("as analysed before"), std::string::npos) << kept.error;
  EXPECT_TRUE(exists("analysis.html"));
  EXPECT_EQ(kept.error.find("not of the same"), std::string::npos) << kept.error;
  EXPECT_EQ(kept.error.find("is missing"), std::string::npos) << kept.error;
  std::filesystem::remove(folder / "of_pre/analysis.safetensors");
  EXPECT_NE(run("analyze --compare hc of_pre").error.find("of_pre/analysis.safetensors: is missing"),
            std::string::npos);
  ASSERT_EQ(run("analyze pre --samples 1").exit_code, 0);
  const CommandResult unlike = run("analyze engine.threads=1 --compare pre hc");
  ASSERT_EQ(unlike.exit_code, 0) << unlike.error;
  EXPECT_EQ(run("analyze --compare pre hc engine.threads=1").exit_code, 0) << read("error.txt");
  EXPECT_NE(unlike.error.find("siamese: not of the same: samples (1 and 2)"), std::string::npos) << unlike.error;
}

TEST_F(AnalyzeVerb, TakesOtherData) {
  write("a.txt", std::string(2000, 'a') + std::string(2000, 'b'));
  write("b.txt", std::string(1000, 'b'));
  write("c.txt", std::string(1000, 'c'));
  ASSERT_EQ(run(tiny + "data.source=text 'data.train=[a.txt]' 'data.val=[b.txt]' --quiet --out t").exit_code, 0)
      << read("error.txt");
  const CommandResult result = run("analyze t --samples 2 --data c.txt");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  ASSERT_EQ(run("analyze t --samples 2 --out own").exit_code, 0);
  const auto other = json_of("t/analysis/step6/analysis.json"), own = json_of("own/analysis.json");
  EXPECT_NE(other["loss"], own["loss"]);
  EXPECT_EQ(other["peaks"][0]["text"], "c");
  EXPECT_EQ(own["peaks"][0]["text"], "b");
  expect_refusal("analyze t --data none.txt", 3, "none.txt");
}

// Big-endian, as the numbers in the head of an IDX file are.
std::string big_endian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

TEST_F(AnalyzeVerb, RefusesDataThatDoNotFitTheModel) {
  // Token ids past the vocabulary: bytes of another alphabet, as tokens of 16 bits.
  const auto tokens = [](char most) {
    std::string bytes;
    for (int i = 0; i < 2000; ++i) bytes += {static_cast<char>((i * i + i / 7) % most), '\0'};
    return bytes;
  };
  write("a.bin", tokens(15));
  write("b.bin", tokens(13));
  write("c.bin", tokens(14));
  write("wide.bin", tokens(20));
  const std::string of_tokens = "data.source=tokens data.format=olmo_npy_u16 'data.train=[a.bin]' 'data.val=[b.bin]' ";
  ASSERT_EQ(run(tiny + of_tokens + "model.vocab=16 --quiet --out t").exit_code, 0) << read("error.txt");
  EXPECT_EQ(run("analyze t --samples 2 --data c.bin").exit_code, 0) << read("error.txt");
  EXPECT_EQ(json_of("t/analysis/step6/analysis.json")["peaks"][0]["text"], "");  // numbers have none
  expect_refusal("analyze t --samples 2 --data wide.bin --out u", 3, "wide.bin: token ");
  EXPECT_NE(read("error.txt").find("is outside the vocabulary of 16"), std::string::npos) << read("error.txt");
  EXPECT_FALSE(exists("u"));
  // Images of more classes; those of another size are resized, but for latents.
  const auto images = [&](const std::string& name, uint32_t size, char classes) {
    std::filesystem::create_directories(folder / name);
    std::string pixels, labels;
    for (uint32_t i = 0; i < 20 * size * size; ++i) pixels += static_cast<char>(i * i / 5);
    for (char i = 0; i < 20; ++i) labels += static_cast<char>(i % classes);
    for (const char* const side : {"train", "t10k"}) {
      write(name + "/" + side + "-images-idx3-ubyte",
            big_endian(2051) + big_endian(20) + big_endian(size) + big_endian(size) + pixels);
      write(name + "/" + side + "-labels-idx1-ubyte", big_endian(2049) + big_endian(20) + labels);
    }
  };
  images("ten", 8, 10);
  images("large", 12, 10);
  images("more", 8, 20);
  const std::string small =
      "model.width=16 model.blocks=1 model.heads=2 model.image=8 model.patch=4 model.classes=10 train.batch=4 "
      "train.steps=2 eval.batches=1 engine.threads=1 --quiet ";
  ASSERT_EQ(run("train vit-micro model.channels=1 data.source=idx 'data.train=[ten]' " + small + "--out i").exit_code,
            0)
      << read("error.txt");
  EXPECT_EQ(run("analyze i --samples 20 --data large").exit_code, 0) << read("error.txt");
  expect_refusal("analyze i --samples 20 --data more", 3, "label 10: expected below model.classes 10, got 10");
  expect_refusal("analyze i --samples 2 --data a.bin", 3, "a.bin");
  const auto latents = [&](const std::string& name, int64_t size) {
    const std::vector<float> values(static_cast<size_t>(4 * 20 * size * size), 0.5F);
    const std::vector<int64_t> labels(20, 3);
    const auto view = [](const std::string& of, io::DType dtype, std::vector<int64_t> shape, auto bytes) {
      return io::TensorView{
          .name = of, .dtype = dtype, .shape = std::move(shape), .data = bytes.data(), .bytes = bytes.size()};
    };
    const std::vector<io::TensorView> views = {
        view("latents", io::DType::f32, {20, 4, size, size}, std::as_bytes(std::span(values))),
        view("labels", io::DType::i64, {20}, std::as_bytes(std::span(labels)))};
    io::write_safetensors(folder / name, views, {});
  };
  latents("l8.safetensors", 8);
  latents("l12.safetensors", 12);
  ASSERT_EQ(run("train dit-micro model.channels=4 data.source=latents data.augment.flip=false "
                "'data.train=[l8.safetensors]' " +
                small + "--out d")
                .exit_code,
            0)
      << read("error.txt");
  expect_refusal("analyze d --samples 2 --data l12.safetensors", 3, "expected F32, F16 or BF16 [N, 4, 8, 8]");
}

// What a pass keeps, a thousand tokens of every stream at every place, is let go before the next: 32 times as many
// samples, 170 MB of streams if all were kept, take no more memory.
TEST_F(AnalyzeVerb, TakesNoMoreMemoryForMoreSamples) {
  write("a.txt", std::string(70000, 'a') + std::string(70000, 'b'));
  write("b.txt", [] {
    std::string text;
    for (int64_t i = 0; i < 70000; ++i) text += static_cast<char>('a' + i * i / 11 % 23);
    return text;
  }());
  ASSERT_EQ(run(tiny + "data.source=text 'data.train=[a.txt]' 'data.val=[b.txt]' model.context=256 model.width=64 "
                       "model.residual=siamese train.steps=1 train.batch=1 --quiet --out x")
                .exit_code,
            0)
      << read("error.txt");
  const auto most_mb = [&](const std::string& samples) {
    const pid_t child = fork();
    if (child == 0) {
      setenv("ASAN_OPTIONS", "detect_leaks=0:quarantine_size_mb=1", 1);  // else it keeps 256 MB of what was freed
      if (chdir(folder.c_str()) != 0 || std::freopen("out.txt", "w", stdout) == nullptr) _exit(99);
      execl(SIAMESE_BINARY, SIAMESE_BINARY, "analyze", "x", "--changed-samples", "1", "--samples", samples.c_str(),
            "--out", ("of" + samples).c_str(), static_cast<char*>(nullptr));
      _exit(98);
    }
    int status = 0;
    rusage used{};
    EXPECT_EQ(wait4(child, &status, 0, &used), child);
    EXPECT_EQ(status, 0);
    return static_cast<double>(used.ru_maxrss) / 1024;
  };
  const double few = most_mb("8"), many = most_mb("256");
  EXPECT_LT(many, few + 40) << few;
}

TEST_F(AnalyzeVerb, RefusesInOneLine) {
  train("x");
  expect_refusal("analyze", 2, "RUN");
  expect_refusal("analyze none", 3, "none");
  expect_refusal("analyze x model.width=8", 2, "model.width=8");
  expect_refusal("analyze x --samples 0", 2, "--samples");
  expect_refusal("analyze x --out x/step6", 2, "is no analysis");
  expect_refusal("analyze x --data a.txt", 2, "data.val");
  expect_refusal("analyze x --compare x x", 2, "--compare");
  expect_refusal("analyze --compare x", 2, "--compare");
  ASSERT_EQ(run("analyze x --samples 2 --out y").exit_code, 0);
  std::string text = read("y/analysis.json");
  text.replace(text.find("\"schema\": 3"), 11, "\"schema\": 9");
  write("y/analysis.json", text);
  expect_refusal("analyze --compare y x", 3, "schema: expected 1");
  write("y/analysis.json", "{\x1b[2J");
  expect_refusal("analyze --compare y x", 3, "y/analysis.json");
  EXPECT_FALSE(exists("analysis.html"));
}

}  // namespace
}  // namespace siamese::cli
