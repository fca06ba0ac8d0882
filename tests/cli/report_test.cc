// report of several run directories: one page, one table, one JSON object.
#include "tests/cli/command.h"
#include <nlohmann/json.hpp>

namespace siamese::cli {
namespace {

class Report : public CommandTest {
 protected:
  Report() {
    train("model.residual=pre --out here/pre");
    train("model.residual=siamese --out there/siamese");
    train("model.residual=siamese train.seed=2 model.width=8 --out elsewhere");
  }
  void train(const std::string& rest) const {
    const CommandResult result = run(tiny + rest + " --quiet");
    EXPECT_EQ(result.exit_code, 0) << result.error;
  }
};

TEST_F(Report, OfUnrelatedRunsAsJson) {
  const CommandResult result = run("report here/pre there/siamese/step4 elsewhere --json");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1) << result.out;
  const auto line = nlohmann::json::parse(result.out);
  EXPECT_EQ(line["kind"], "results");
  EXPECT_EQ(line["schema"], 2);
  ASSERT_EQ(line["runs"].size(), 3u);
  EXPECT_EQ(line["runs"][0]["scheme"], "pre");
  EXPECT_EQ(line["runs"][1]["scheme"], "siamese");
  EXPECT_EQ(line["runs"][1]["step"], 4);  // of the checkpoint that was asked for, not of the run's end
  EXPECT_EQ(line["runs"][2]["step"], 6);
  EXPECT_FALSE(exists("report.html"));
  EXPECT_FALSE(exists("here/pre/report.html"));
}

TEST_F(Report, OfUnrelatedRunsAsPageAndTable) {
  const CommandResult result = run("report here/pre there/siamese elsewhere --out page.html --csv table.csv");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(result.out, "page.html\ntable.csv\n");
  EXPECT_NE(read("page.html").find("siamese"), std::string::npos);
  const std::string table = read("table.csv");
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 4) << table;  // a head and three variants
  EXPECT_EQ(run("report here/pre there/siamese elsewhere --out page.html --csv -").out, table);
}

TEST_F(Report, JsonWritesNoFile) {
  expect_refusal("report here/pre --json --out page.html", 2, "--json");
  expect_refusal("report here/pre --json --csv table.csv", 2, "--json");
  expect_refusal("report here/pre here/nobody --json", 3, "here/nobody");
}

}  // namespace
}  // namespace siamese::cli
