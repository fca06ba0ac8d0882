// `siamese eval RUN --tasks`, as a user runs it.
#include "tests/cli/command.h"
#include <nlohmann/json.hpp>

namespace siamese::cli {
namespace {

class EvalTasks : public CommandTest {
 protected:
  void make_run() const {
    write("corpus.txt", "the cat sat on the mat and the cat sat on the hat\n");
    ASSERT_EQ(run("tokenizer train t.json corpus.txt --vocab 280").exit_code, 0);
    const auto made = run(tiny + "data.source=random model.vocab=280 --out x");
    ASSERT_EQ(made.exit_code, 0) << made.error;
  }
  static std::string request(int document, int index, const std::string& context, const std::string& continuation) {
    return R"({"request_type": "loglikelihood", "request": {"context": ")" + context + R"(", "continuation": ")" +
           continuation + R"("}, "idx": )" + std::to_string(index) + R"(, "doc_id": )" + std::to_string(document) +
           R"(, "label": 1})" + "\n";
  }
  void make_set(const std::string& name) const {
    std::filesystem::create_directories(folder / name);
    write(name + "/requests.jsonl", request(0, 0, "the", " cat") + request(0, 1, "the", " mat") +
                                        request(1, 0, "on", " the hat") + request(1, 1, "on", " cat"));
    write(name + "/config.json", R"({"task_name": "cats", "task_config": {"primary_metric": "acc_raw"}})");
  }
};

TEST_F(EvalTasks, TableJsonAndWhatIsKept) {
  make_run();
  make_set("sets/cats/rc");
  const auto table = run("eval x --tasks sets --tokenizer t.json");
  ASSERT_EQ(table.exit_code, 0) << table.error;
  EXPECT_NE(table.out.find("cats/rc  2          0         acc"), std::string::npos) << table.out;
  ASSERT_TRUE(exists("x/tasks/step6/cats_rc.jsonl"));
  const std::string kept = read("x/tasks/step6/cats_rc.jsonl");
  const auto json = run("eval x --tasks sets --tokenizer t.json --json");
  EXPECT_EQ(read("x/tasks/step6/cats_rc.jsonl"), kept);  // nothing was asked again
  const auto record = nlohmann::json::parse(json.out);
  EXPECT_EQ(record["kind"], "eval");
  EXPECT_EQ(record["step"], 6);
  EXPECT_EQ(record["tasks"][0]["name"], "cats/rc");
  EXPECT_EQ(record["tasks"][0]["documents"], 2);
  EXPECT_TRUE(record["tasks"][0]["metrics"].contains("bpb"));
  const std::string lines = read("x/tasks/step6/eval.jsonl");
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2);
  EXPECT_TRUE(lines.ends_with(json.out));
  // A tokenizer that lies in the run is found, and a list of sets; overrides may stand behind.
  std::filesystem::copy_file(folder / "t.json", folder / "x/tokenizer.json");
  write("list.yaml", "sets: [cats/rc]\n");
  const auto listed = run("eval x --out o --sets sets --limit 1 --json --tasks list.yaml engine.threads=1");
  ASSERT_EQ(listed.exit_code, 0) << listed.error;
  EXPECT_EQ(nlohmann::json::parse(listed.out)["tasks"][0]["documents"], 1);
  EXPECT_TRUE(exists("o/eval.jsonl"));
}

TEST_F(EvalTasks, AreAskedInTheLoop) {
  make_run();
  make_set("cats");
  const auto made = run(tiny + "data.source=random model.vocab=280 eval.tasks=[cats] eval.tokenizer=t.json --out y");
  ASSERT_EQ(made.exit_code, 0) << made.error;
  EXPECT_NE(made.error.find("cats acc "), std::string::npos) << made.error;
  std::stringstream lines(read("y/eval.jsonl"));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const auto record = nlohmann::json::parse(line);
    EXPECT_TRUE(record["loss"].is_number());
    EXPECT_EQ(record["tasks"][0]["documents"], 2);
  }
  EXPECT_EQ(count, 2);
  // The last line is what `eval` says of the run, and what --tasks does.
  const auto again = nlohmann::json::parse(run("eval y --json").out);
  const auto alone = nlohmann::json::parse(run("eval y --tasks cats --tokenizer t.json --json").out);
  EXPECT_EQ(again["tasks"], alone["tasks"]);
}

TEST_F(EvalTasks, AreAskedInTheWordsOfTheRun) {
  make_run();
  make_set("cats");
  ASSERT_EQ(run("prepare corpus.txt --tokenizer t.json --out data --val-fraction 0").exit_code, 0);
  const std::string keys = tiny +
                           "data.source=tokens data.train=[data/train] data.val_fraction=0.5 model.context=4 "
                           "model.vocab=280 eval.tasks=[cats] ";
  const auto made = run(keys + "--out y");
  ASSERT_EQ(made.exit_code, 0) << made.error;
  // The checkpoint has the tokenizer: neither `eval` nor `resume` needs the file that it came from.
  std::filesystem::remove(folder / "t.json");
  std::filesystem::remove(folder / "data/tokenizer.json");
  const auto again = nlohmann::json::parse(run("eval y --json").out);
  const auto alone = nlohmann::json::parse(run("eval y --tasks cats --json").out);
  EXPECT_EQ(again["tasks"], alone["tasks"]);
  const auto resumed = run("resume y train.steps=8");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.error;
  const std::string lines = read("y/eval.jsonl");
  const auto last = nlohmann::json::parse(lines.substr(lines.rfind('\n', lines.size() - 2) + 1));
  EXPECT_EQ(last["step"], 8);
  EXPECT_EQ(last["tasks"][0]["documents"], 2);
}

TEST_F(EvalTasks, BadInputIsOneLine) {
  make_run();
  make_set("cats");
  expect_refusal("eval x --tasks cats", 2, "--tokenizer: expected a tokenizer.json: x/step6 has none");
  expect_refusal("eval x --tasks none --tokenizer t.json", 2, "no config 'none'");
  expect_refusal("eval x --tasks olmo --tokenizer t.json", 2, "--sets: expected the folder");
  expect_refusal("eval x --limit 3", 2, "--tasks");
  write("cats/requests.jsonl", request(0, 0, "the", " cat") + "{}\n");
  expect_refusal("eval x --tasks cats --tokenizer t.json", 3, "cats/requests.jsonl: line 2: request_type: missing");
  expect_refusal(tiny + "eval.tasks=[cats] --out z", 2, "eval.tokenizer: expected a tokenizer.json");
  expect_refusal(tiny + "eval.tasks=[cats] eval.tokenizer=t.json --out z", 3,
                 "eval.tasks: cats/requests.jsonl: line 2");
  EXPECT_FALSE(exists("z"));
}

}  // namespace
}  // namespace siamese::cli
