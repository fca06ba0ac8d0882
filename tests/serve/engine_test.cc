#include "siamese/serve/engine.h"

#include <cmath>
#include <thread>

#include "tests/models/small_lm.h"
#include <gtest/gtest.h>

#include "siamese/eval/generate.h"

namespace siamese::serve {
namespace {

struct Choice {
  std::string text;
  std::vector<TokenScore> scores;
  std::optional<eval::Finish> finish;
};

class EngineTest : public ::testing::Test {
 protected:
  explicit EngineTest(const std::string& scheme = "siamese") {
    models::ModelConfig config = models::small_config(scheme);
    config.vocab = 256;
    config.context = 48;
    model_ = models::make_lm(config, 3);
    data::DataConfig data;
    data.source = data::Source::text;
    words_ = eval::words_of_source(data);
    engine_ = std::make_unique<Engine>(*model_, *words_, 64);
    thread_ = std::thread([this] { engine_->run([] { return false; }); });
  }
  ~EngineTest() override {
    engine_->close();
    thread_.join();
  }

  std::shared_ptr<Job> submit(CompletionRequest request) {
    std::vector<std::vector<int64_t>> prompts;
    for (const Prompt& prompt : request.prompts)
      prompts.push_back(words_->encode(std::get<std::string>(prompt), false));
    auto job = std::make_shared<Job>(std::move(request), std::move(prompts));
    EXPECT_TRUE(engine_->submit(job));
    return job;
  }
  static std::vector<Choice> wait(Job& job) {
    std::vector<Choice> choices(job.choices());
    while (auto piece = job.next(Job::Clock::now() + std::chrono::minutes(5))) {
      Choice& choice = choices[piece->choice];
      choice.text += piece->text;
      choice.scores.insert(choice.scores.end(), piece->scores.begin(), piece->scores.end());
      if (piece->finish) choice.finish = piece->finish;
    }
    EXPECT_EQ(job.failure(), "");
    EXPECT_TRUE(job.finished());
    return choices;
  }
  std::vector<std::string> generated(const CompletionRequest& request) {
    std::vector<std::vector<int64_t>> prompts;
    std::vector<eval::Continuation> made;
    for (const Prompt& prompt : request.prompts) {
      for (int64_t i = 0; i < request.n; ++i) {
        prompts.push_back(words_->encode(std::get<std::string>(prompt), false));
        made.emplace_back(*words_, prompts.back(), request.stop);
      }
    }
    std::vector<std::string> texts(prompts.size());
    eval::generate(*model_, prompts,
                   {.max_tokens = request.max_tokens,
                    .temperature = request.temperature,
                    .top_k = request.top_k,
                    .top_p = request.top_p,
                    .seed = request.seed},
                   [&](size_t i, int64_t token) {
                     texts[i] += made[i].add(token);
                     return !made[i].done();
                   });
    for (size_t i = 0; i < made.size(); ++i) texts[i] += made[i].rest();
    return texts;
  }

  std::unique_ptr<models::LanguageModel> model_;
  std::unique_ptr<eval::Words> words_;
  std::unique_ptr<Engine> engine_;
  std::thread thread_;
};

CompletionRequest asking(const std::string& prompt, int64_t max_tokens, double temperature = 0) {
  CompletionRequest request;
  request.prompts = {prompt};
  request.max_tokens = max_tokens;
  request.temperature = temperature;
  return request;
}

// Many at once, which join and leave at different steps: each as if it were alone, and as `generate` makes it.
TEST_F(EngineTest, WhatElseIsAskedDoesNotMatter) {
  std::vector<CompletionRequest> requests;
  for (int i = 0; i < 20; ++i) {
    CompletionRequest request = asking(std::string(static_cast<size_t>(1 + i % 7), static_cast<char>('a' + i)),
                                       3 + 5 * (i % 6), i % 3 == 0 ? 0 : 0.9);
    request.seed = static_cast<uint64_t>(i);
    request.n = i % 4 == 0 ? 2 : 1;
    request.top_p = i % 5 == 0 ? 0.8 : 1;
    if (i % 6 == 1) request.stop = {"e", "zz"};
    if (i % 7 == 2) request.prompts.emplace_back("more");
    requests.push_back(request);
  }
  std::vector<std::shared_ptr<Job>> jobs;
  for (const auto& request : requests) jobs.push_back(submit(request));
  for (size_t i = 0; i < jobs.size(); ++i) {
    std::vector<std::string> texts;
    for (const Choice& choice : wait(*jobs[i])) texts.push_back(choice.text);
    EXPECT_EQ(texts, generated(requests[i])) << i;
  }
  EXPECT_EQ(engine_->waiting(), 0U);
}

// Against log-softmax written out in double over the model's logits.
TEST_F(EngineTest, Logprobs) {
  CompletionRequest request = asking("hello", 4);
  request.logprobs = 3;
  request.echo = true;
  const Choice choice = wait(*submit(request))[0];
  EXPECT_TRUE(choice.text.starts_with("hello"));
  std::vector<int64_t> tokens = words_->encode("hello", false);
  const auto continuation = generated(asking("hello", 4))[0];
  ASSERT_EQ(choice.scores.size(), 9U);
  EXPECT_FALSE(choice.scores[0].logprob);
  const c10::NoGradGuard no_grad;
  for (size_t at = 1; at < choice.scores.size(); ++at) {
    const at::Tensor logits =
        model_->logits(model_->hidden(at::tensor(tokens, at::kLong).unsqueeze(0)))[0].to(at::kDouble);
    if (at < 5) {
      // The prompt: position at - 1 predicts token at.
      double sum = 0, best = -1e300;
      for (int64_t id = 0; id < 256; ++id) {
        const double logit = logits[static_cast<int64_t>(at) - 1][id].item<double>();
        sum += std::exp(logit);
        best = std::max(best, logit);
      }
      const double expected = logits[static_cast<int64_t>(at) - 1][tokens[at]].item<double>() - std::log(sum);
      EXPECT_NEAR(*choice.scores[at].logprob, expected, 1e-5) << at;
      EXPECT_NEAR(choice.scores[at].top[0].second, best - std::log(sum), 1e-5) << at;
    }
    EXPECT_GE(choice.scores[at].top.size(), 1U);
    EXPECT_LE(choice.scores[at].top.size(), 4U);
    for (size_t i = 1; i < choice.scores[at].top.size(); ++i) {
      EXPECT_LE(choice.scores[at].top[i].second, choice.scores[at].top[i - 1].second);
    }
  }
  // Greedy: what was made is the likeliest.
  for (size_t at = 5; at < 9; ++at) EXPECT_EQ(*choice.scores[at].logprob, choice.scores[at].top[0].second);
}

TEST_F(EngineTest, ScoringAlone) {
  CompletionRequest request = asking("abc", 0);
  request.echo = true;
  request.logprobs = 0;
  const Choice choice = wait(*submit(request))[0];
  EXPECT_EQ(choice.text, "abc");
  EXPECT_EQ(choice.scores.size(), 3U);
  EXPECT_EQ(choice.finish, eval::Finish::length);
}

TEST_F(EngineTest, WhoHangsUpOrComesTooManyTimes) {
  const auto gone = submit(asking("a", 4000));
  gone->cancel();
  EXPECT_EQ(wait(*submit(asking("b", 3))).size(), 1U);
  CompletionRequest many = asking("c", 1);
  many.n = 65;
  std::vector<std::vector<int64_t>> prompts = {words_->encode("c", false)};
  EXPECT_FALSE(engine_->submit(std::make_shared<Job>(many, prompts)));
}

TEST_F(EngineTest, AtTheEndThoseWhoWaitAreTold) {
  const auto job = submit(asking("a", 1 << 30));
  engine_->close();
  while (job->next(Job::Clock::now() + std::chrono::minutes(5))) {
  }
  EXPECT_NE(job->failure().find("shutting down"), std::string::npos);
  EXPECT_FALSE(engine_->submit(job));
}

}  // namespace
}  // namespace siamese::serve
