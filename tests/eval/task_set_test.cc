#include "siamese/eval/task_set.h"

#include "tests/eval/task_files.h"
#include "tests/support/errors.h"

namespace siamese::eval {
namespace {

using testing::expect_error;

class TaskSetTest : public TaskFiles {
 protected:
  void expect_refused(const std::string& lines, const std::vector<std::string>& words) const {
    write("bad/requests.jsonl", lines);
    expect_error<DataError>([&] { read_task_set(folder / "bad"); }, words);
  }
};

TEST_F(TaskSetTest, GathersDocuments) {
  write_set();
  const TaskSet set = read_task_set(folder / "animals/rc");
  EXPECT_EQ(set.name, "animals/rc");
  EXPECT_EQ(set.primary, "len_norm");
  EXPECT_TRUE(set.of_choices);
  EXPECT_TRUE(set.has_unconditional());
  ASSERT_EQ(set.documents.size(), 3U);
  EXPECT_EQ(set.documents[1].id, 4);
  EXPECT_EQ(set.documents[1].choices.size(), 3U);
  EXPECT_EQ(set.documents[1].choices[1].continuation, " jab");
  EXPECT_EQ(set.documents[1].unconditional[1].context, "mm");
  EXPECT_EQ(set.documents[2].label, 1);
  EXPECT_EQ(set.documents[2].choices[1].context, "cf");
  EXPECT_EQ(set.documents[2].choices[1].line, 7U);
  EXPECT_EQ(read_task_set(folder / "animals/rc", 2).documents.size(), 2U);
  EXPECT_EQ(find_task_sets(folder), std::vector{folder / "animals/rc"});
}

TEST_F(TaskSetTest, LabelsInWordsAndWhatIsToBeGenerated) {
  write("sums/config.json", R"({"task_name": "sums", "task_config": {"primary_metric": "exact_match"}})");
  write("sums/requests.jsonl", request(0, 0, "a", " b", R"(["x", "y"])", "generate_until_and_loglikelihood",
                                       R"(, "stop_sequences": ["d", "ef"], "generation_kwargs": {"max_gen_toks": 7})") +
                                   request(1, 0, "c", " d", R"("z")", "generate_until_and_loglikelihood") +
                                   request(2, 3, "c", " d", "null", "loglikelihood"));
  const TaskSet set = read_task_set(folder / "sums");
  EXPECT_EQ(set.name, "sums");
  EXPECT_FALSE(set.of_choices);
  EXPECT_TRUE(set.generates);
  ASSERT_EQ(set.documents.size(), 3U);
  EXPECT_EQ(set.documents[0].answers, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(set.documents[0].stop, (std::vector<std::string>{"d", "ef"}));
  EXPECT_EQ(set.documents[0].max_tokens, 7);
  EXPECT_EQ(set.documents[1].max_tokens, 256);
  EXPECT_EQ(set.documents[2].max_tokens, 0);
  EXPECT_EQ(set.documents[2].choices.size(), 1U);  // its index says nothing where nothing is to be chosen
}

// As the package does it: of equal requests the first counts, a document without all its choices is left out.
TEST_F(TaskSetTest, RepeatedAndMissingChoices) {
  write("s/requests.jsonl", request(0, 0, "a", " b", "0") + request(0, 0, "a", " c", "0") +
                                request(0, 1, "a", " d", "0") + request(1, 1, "a", " b", "1"));
  const TaskSet set = read_task_set(folder / "s");
  ASSERT_EQ(set.documents.size(), 1U);
  EXPECT_EQ(set.documents[0].choices[0].continuation, " b");
  EXPECT_EQ(set.incomplete, 1);
}

TEST_F(TaskSetTest, BadLinesAreNamed) {
  const std::string good = request(0, 0, "a", " b", "0");
  expect_refused("", {"bad/requests.jsonl: holds no request"});
  expect_refused("\n\n", {"holds no request"});
  expect_refused(good + "{", {"requests.jsonl: line 2"});
  expect_refused(good + "[1]\n", {"line 2: expected an object, got [1]"});
  expect_refused(R"({"doc_id": 0})", {"line 1: request_type: missing"});
  expect_refused(request(0, 0, "a", " b", "0", "rolling"), {"request_type: expected loglikelihood", "\"rolling\""});
  expect_refused(request(-1, 0, "a", " b", "0"), {"line 1: doc_id: expected a whole number", "got -1"});
  expect_refused(request(0, -1, "a", " b", "0"), {"idx: expected a whole number"});
  expect_refused(request(0, 0, "a", "", "0"), {"request.continuation: expected text, got none"});
  expect_refused(request(0, 0, "a", " b", "1.5"), {"label: expected the index of a choice", "1.5"});
  expect_refused(request(0, 0, "a", " b", "[1]"), {"label: expected a list of texts"});
  expect_refused(request(0, 0, "a", " b", "2"), {"line 1: label: expected the index of one of 1 choices, got 2"});
  expect_refused(good + request(1, 0, "a", " b", "\"x\""), {"line 2: label: expected the index of a choice"});
  expect_refused(R"({"request_type": "loglikelihood", "doc_id": 0, "idx": 0, "label": 0, "request": {"context": 5}})",
                 {"line 1: request.context: expected text, got 5"});
  expect_refused(R"({"request_type": "loglikelihood", "doc_id": 0, "idx": 0, "label": 0, "request": "a"})",
                 {"line 1: request: expected an object"});
  expect_refused(request(0, 0, "\\ud800", " b", "0"), {"line 1"});
  expect_refused(request(0, 1, "a", " b", "1"), {"holds no document with all of its choices"});
}

TEST_F(TaskSetTest, BadFolders) {
  expect_error<DataError>([&] { find_task_sets(folder / "none"); }, {"expected a folder"});
  std::filesystem::create_directories(folder / "empty");
  expect_error<DataError>([&] { find_task_sets(folder / "empty"); }, {"holds no requests.jsonl"});
  write("s/requests.jsonl", request(0, 0, "a", " b", "0"));
  write("s/config.json", R"({"task_config": {"primary_metric": "bleu"}})");
  expect_error<DataError>([&] { read_task_set(folder / "s"); },
                          {"config.json: task_config.primary_metric: expected one of acc_raw", "\"bleu\""});
  write("s/config.json", R"({"task_config": [])");
  expect_error<DataError>([&] { read_task_set(folder / "s"); }, {"config.json"});
}

}  // namespace
}  // namespace siamese::eval
