#include "siamese/runs/task_record.h"

#include <fstream>

#include "tests/runs/support.h"
#include <nlohmann/json.hpp>

#include "siamese/runs/eval_record.h"

namespace siamese::runs {
namespace {

TaskRecord some_task() {
  return {.name = "piqa/rc_0shot",
          .primary = "len_norm",
          .documents = 1838,
          .left_out = 2,
          .metrics = {{"acc", 0.5}, {"len_norm", 0.625}, {"bpb", 1.25}}};
}

TEST(TaskRecord, IsPartOfAnEvaluation) {
  EvalRecord record;
  record.step = 7;
  record.tasks = {some_task(), {.name = "copa", .primary = "", .documents = 3, .left_out = 0, .metrics = {}}};
  const std::string line = to_line(record);
  EXPECT_FALSE(nlohmann::json::parse(line).contains("loss"));  // nothing was held out
  const EvalRecord read = read_eval(line, "here");
  EXPECT_EQ(to_line(read), line);
  ASSERT_EQ(read.tasks.size(), 2U);
  EXPECT_EQ(read.tasks[0].left_out, 2);
  EXPECT_EQ(read.tasks[0].primary_value(), 0.625);
  EXPECT_EQ(read.measures(), (NamedNumbers{{"piqa/rc_0shot len_norm", 0.625}}));
  record.loss = 1.5;
  record.targets = 10;
  EXPECT_EQ(nlohmann::json::parse(to_line(record))["loss"], 1.5);
}

TEST(TaskRecord, AWrongOneIsNamed) {
  auto line = nlohmann::ordered_json::parse(R"({"schema": 1, "step": 3, "tasks": [{"name": "x"}]})");
  expect_said(error_of([&] { read_eval(line.dump(), "eval.jsonl: line 1"); }), "tasks: documents");
}

class ScoresTest : public FolderTest {};

TEST_F(ScoresTest, AreReadAsTheyWereWritten) {
  const ScoresHead head{.task = "piqa", .set = 1, .tokenizer = 2, .weights = 3, .limit = 4, .context = 5};
  const ScoresLine numbers{.part = "choices", .documents = {3, 1}, .numbers = {{-1.1, -2}, {-0.1}}, .texts = {}};
  const ScoresLine texts{.part = "answers", .documents = {3}, .numbers = {}, .texts = {"a \"b\"\n"}};
  const auto file = folder_ / "piqa.jsonl";
  EXPECT_FALSE(read_scores(file));
  const std::string whole = to_line(head) + "\n" + to_line(numbers) + "\n" + to_line(texts) + "\n";
  std::ofstream(file) << whole << to_line(texts).substr(0, 30);  // torn
  const auto read = read_scores(file);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->head, head);
  ASSERT_EQ(read->lines.size(), 2U);
  EXPECT_EQ(read->lines[0].numbers, numbers.numbers);
  EXPECT_EQ(read->lines[0].documents, numbers.documents);
  EXPECT_EQ(read->lines[1].texts, texts.texts);
  std::string flipped = whole;
  flipped[whole.find("-1.1") + 1] = '2';
  std::ofstream(file) << flipped;
  expect_said(error_of([&] { read_scores(file); }), "line 2");
}

}  // namespace
}  // namespace siamese::runs
