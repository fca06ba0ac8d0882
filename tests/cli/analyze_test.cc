#include "tests/cli/command.h"
#include <nlohmann/json.hpp>

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
  first.erase("made_by");
  repeated.erase("made_by");
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
  EXPECT_NE(other["peaks"][0]["token"], own["peaks"][0]["token"]);  // c, and b
  expect_refusal("analyze t --data none.txt", 3, "none.txt");
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
  text.replace(text.find("\"schema\": 2"), 11, "\"schema\": 9");
  write("y/analysis.json", text);
  expect_refusal("analyze --compare y x", 3, "schema: expected 1");
  write("y/analysis.json", "{\x1b[2J");
  expect_refusal("analyze --compare y x", 3, "y/analysis.json");
  EXPECT_FALSE(exists("analysis.html"));
}

}  // namespace
}  // namespace siamese::cli
