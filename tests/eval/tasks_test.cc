#include "siamese/eval/tasks.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/eval/task_files.h"
#include "tests/models/small_lm.h"
#include "tests/support/errors.h"

#include <ATen/ATen.h>

#include "siamese/eval/generate.h"
#include "siamese/eval/task_requests.h"
#include "siamese/io/atomic_file.h"

namespace siamese::eval {
namespace {

using testing::expect_error;

models::ModelConfig letters_model() {
  models::ModelConfig config = models::small_config("siamese");
  config.context = 14;
  return config;
}

// Tokens of the made-up tokenizer, by hand.
std::vector<int64_t> ids(const std::string& text) {
  std::vector<int64_t> all;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "ab") == 0) {
      all.push_back(14);
      ++i;
    } else {
      all.push_back(text[i] == ' ' ? 13 : text[i] - 'a');
    }
  }
  return all;
}

double log_likelihood(const models::LanguageModel& model, std::vector<int64_t> context, const std::string& end) {
  const auto tail = ids(end);
  context.insert(context.end(), tail.begin(), tail.end());
  const c10::NoGradGuard no_grad;
  const at::Tensor tokens = at::tensor(context, at::kLong).unsqueeze(0);
  const at::Tensor logs = at::log_softmax(model.logits(model.hidden(tokens))[0].to(at::kDouble), -1);
  double sum = 0;
  for (size_t at = context.size() - tail.size(); at < context.size(); ++at) {
    sum += logs[static_cast<int64_t>(at) - 1][context[at]].item<double>();
  }
  return sum;
}

std::vector<int64_t> begun(const std::string& text) {
  auto all = ids(text);
  all.insert(all.begin(), 15);
  return all;
}

class Counting : public TaskObserver {
 public:
  explicit Counting(int64_t most = 1 << 30) : most_(most) {}
  void progressed(const TaskSet&, int64_t done, int64_t all) override {
    last = done;
    total = all;
  }
  bool stop() override { return made++ >= most_; }
  int64_t last = 0, total = 0, made = 0;

 private:
  int64_t most_;
};

class TasksTest : public TaskFiles {
 protected:
  Tasks open(TaskOptions options = {}) const { return Tasks({folder / "animals"}, folder / "tokenizer.json", options); }
};

TEST_F(TasksTest, MetricsAreThoseOfTheDefinition) {
  write_set();
  const auto model = models::make_lm(letters_model(), 4);
  const Tasks tasks = open();
  Counting observer;
  const auto record = evaluate_task(*model, tasks, tasks.sets()[0], {}, observer);
  ASSERT_TRUE(record);
  EXPECT_EQ(observer.total, 21);
  EXPECT_EQ(observer.last, 21);

  struct Document {
    std::vector<std::string> contexts;
    std::string alone;
    std::vector<std::string> ends;
    size_t label;
  };
  const std::vector<Document> documents = {{{"abc de", "abc de"}, "de", {" ab", " fghi"}, 1},
                                           {{"kab mm", "kab mm", "kab mm"}, "mm", {" ij", " jab", " d"}, 0},
                                           {{"c", "cf"}, "a", {" l", " lk"}, 1}};
  std::map<std::string, double> right;
  double bits = 0;
  for (const Document& document : documents) {
    std::map<std::string, std::vector<double>> scores;
    for (size_t i = 0; i < document.ends.size(); ++i) {
      const std::string& end = document.ends[i];
      const double l = log_likelihood(*model, begun(document.contexts[i]), end);
      const auto length = static_cast<double>(end.size());
      scores["acc"].push_back(l);
      scores["len_norm"].push_back(l / length);
      scores["acc_uncond"].push_back(l - log_likelihood(*model, begun(document.alone), end));
      scores["pmi_dc"].push_back(l / log_likelihood(*model, ids(" "), end));
      if (i == document.label) bits -= l / length / std::log(2);
    }
    for (const auto& [name, values] : scores) {
      const auto best = std::max_element(values.begin(), values.end()) - values.begin();
      right[name] += static_cast<size_t>(best) == document.label ? 1.0 / 3 : 0;
    }
  }
  for (const auto& [name, value] : right) EXPECT_NEAR(runs::number_of(record->metrics, name), value, 1e-9) << name;
  EXPECT_NEAR(runs::number_of(record->metrics, "bpb"), bits / 3, 1e-5);
  EXPECT_EQ(record->primary, "len_norm");
  EXPECT_EQ(record->documents, 3);
  EXPECT_EQ(record->left_out, 0);
}

TEST_F(TasksTest, AnInterruptedEvaluationGoesOn) {
  std::string lines;
  for (int64_t i = 0; i < 2000; ++i) {
    const std::string question(static_cast<size_t>(1 + i % 6), static_cast<char>('a' + i % 13));
    lines += request(i, 0, question, " k", "0") + request(i, 1, question, " lm", "0");
  }
  write("animals/requests.jsonl", lines);
  const auto model = models::make_lm(letters_model(), 4);
  const Tasks tasks = open();
  Counting whole;
  // One that was removed meanwhile may have been a run's: it is not made again.
  expect_error<SystemError>([&] { evaluate_task(*model, tasks, tasks.sets()[0], folder / "whole", whole); },
                            {"whole/animals.jsonl"});
  for (const char* const kept : {"whole", "parts"}) std::filesystem::create_directories(folder / kept);
  const auto expected = evaluate_task(*model, tasks, tasks.sets()[0], folder / "whole", whole);
  ASSERT_TRUE(expected);
  EXPECT_GT(whole.made, 4);
  int64_t batches = 0;
  std::optional<runs::TaskRecord> record;
  for (int64_t at_once = 1; !record; ++at_once) {
    Counting some(at_once);
    record = evaluate_task(*model, tasks, tasks.sets()[0], folder / "parts", some);
    batches += std::min(some.made, at_once);
    // As a kill leaves it: the last line torn.
    if (at_once == 1) {
      std::ofstream(folder / "parts/animals.jsonl", std::ios::app) << R"({"schema":2,"kind":"scores","che)";
    }
  }
  EXPECT_EQ(record->metrics, expected->metrics);
  EXPECT_EQ(batches, whole.made);  // nothing was computed twice
  EXPECT_EQ(io::read_file(folder / "parts/animals.jsonl"), io::read_file(folder / "whole/animals.jsonl"));
  Counting none;
  ASSERT_TRUE(evaluate_task(*model, tasks, tasks.sets()[0], folder / "whole", none));
  EXPECT_EQ(none.made, 0);
  // Other weights: all anew.
  Counting other;
  ASSERT_TRUE(evaluate_task(*models::make_lm(letters_model(), 5), tasks, tasks.sets()[0], folder / "whole", other));
  EXPECT_EQ(other.made, whole.made);
}

TEST_F(TasksTest, WhatDoesNotFitIsLeftOutAndCounted) {
  write("animals/requests.jsonl", request(0, 0, "a", " b", "0") + request(0, 1, "a", " cdefghijklmcdefg", "0") +
                                      request(1, 0, "abcdefghijklmcdefg", " b", "0"));
  const auto model = models::make_lm(letters_model(), 4);
  const Tasks tasks = open();
  Counting observer;
  const auto record = evaluate_task(*model, tasks, tasks.sets()[0], {}, observer);
  EXPECT_EQ(record->documents, 1);
  EXPECT_EQ(record->left_out, 1);
}

TEST_F(TasksTest, TheRightAnswerInWords) {
  const auto model = models::make_lm(letters_model(), 4);
  // What the model says, letter by letter: of the first prompt that it has something to say to.
  std::string prompt, said, stop, answer;
  for (char first = 'a'; first <= 'm' && answer.empty(); ++first) {
    prompt = std::string(1, first) + "c";
    said.clear();
    generate(*model, begun(prompt), {.max_tokens = 6}, [&](int64_t token) {
      if (token >= 15) return false;
      said += token == 14 ? "ab" : std::string(1, token == 13 ? ' ' : static_cast<char>('a' + token));
      return true;
    });
    stop = said.substr(said.empty() ? 0 : said.size() - 1);
    answer = said.substr(0, said.find(stop));
  }
  ASSERT_FALSE(answer.empty()) << said;
  const std::string more = R"(, "stop_sequences": [")" + stop + R"("], "generation_kwargs": {"max_gen_toks": 6})";
  write("animals/requests.jsonl", request(0, 0, prompt, " b", "\"" + answer + "\"", "generate_until", more) +
                                      request(1, 0, prompt, " b", "\"" + said + "x\"", "generate_until", more));
  const Tasks tasks = open();
  Counting observer;
  const auto record = evaluate_task(*model, tasks, tasks.sets()[0], {}, observer);
  EXPECT_EQ(runs::number_of(record->metrics, "exact_match"), 0.5);
  EXPECT_TRUE(std::isnan(runs::number_of(record->metrics, "bpb")));
}

TEST_F(TasksTest, BadTextsAreNamed) {
  const auto model = models::make_lm(letters_model(), 4);
  Counting observer;
  write("animals/requests.jsonl", request(0, 0, "a", " b", "0") + request(1, 0, "a", "xyz", "0"));
  const Tasks none = open();
  expect_error<DataError>([&] { evaluate_task(*model, none, none.sets()[0], {}, observer); },
                          {"requests.jsonl: line 2: request.continuation: has no token"});
  models::ModelConfig small = letters_model();
  small.vocab = 10;
  write("animals/requests.jsonl", request(0, 0, "a", " b", "0"));
  const Tasks foreign = open();
  expect_error<DataError>([&] { encode_requests(foreign, foreign.sets()[0], small); },
                          {"token 13", "model.vocab is 10", "not this model's tokenizer"});
  write_set("animals/again/rc");
  write_set("animals/rc");
  expect_error<UsageError>(
      [&] {
        Tasks({folder / "animals/rc", folder / "animals/again"}, folder);
      },
      {"two sets of the name animals/rc"});
}

}  // namespace
}  // namespace siamese::eval
