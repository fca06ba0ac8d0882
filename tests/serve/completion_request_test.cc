#include "siamese/serve/completion_request.h"

#include "tests/support/errors.h"
#include <gtest/gtest.h>

namespace siamese::serve {
namespace {

CompletionRequest parsed(const std::string& json) { return parse_completion_request(json, {}); }

void refused(const std::string& json, const std::vector<std::string>& words) {
  SCOPED_TRACE(json);
  siamese::testing::expect_error([&] { parsed(json); }, words);
}

TEST(CompletionRequest, Prompts) {
  using Ids = std::vector<int64_t>;
  EXPECT_EQ(parsed(R"({"prompt": "a"})").prompts, (std::vector<Prompt>{"a"}));
  EXPECT_EQ(parsed(R"({"prompt": ["a", "b"]})").prompts, (std::vector<Prompt>{"a", "b"}));
  EXPECT_EQ(parsed(R"({"prompt": [1, 2]})").prompts, (std::vector<Prompt>{Ids{1, 2}}));
  EXPECT_EQ(parsed(R"({"prompt": [[1, 2], [3]]})").prompts, (std::vector<Prompt>{Ids{1, 2}, Ids{3}}));
  EXPECT_EQ(parsed(R"({"prompt": ["a", [3]]})").prompts, (std::vector<Prompt>{"a", Ids{3}}));
  refused("{}", {"prompt: missing"});
  refused(R"({"prompt": null})", {"prompt: missing"});
  refused(R"({"prompt": []})", {"prompt: expected text"});
  refused(R"({"prompt": 3})", {"prompt: expected text"});
  refused(R"({"prompt": [1, "a"]})", {"a token id", "got"});
  refused(R"({"prompt": [[-1]]})", {"a token id", "-1"});
  refused(R"({"prompt": [[1.5]]})", {"a token id", "1.5"});
  refused(R"({"prompt": [true]})", {"prompt: expected text", "true"});
}

TEST(CompletionRequest, DefaultsAreOpenAis) {
  const CompletionRequest request = parsed(R"({"prompt": "a", "model": "x", "user": "me", "max_tokens": null})");
  EXPECT_EQ(request.max_tokens, 16);
  EXPECT_EQ(request.temperature, 1);
  EXPECT_EQ(request.top_p, 1);
  EXPECT_EQ(request.n, 1);
  EXPECT_FALSE(request.logprobs);
  EXPECT_FALSE(request.echo || request.stream);
}

TEST(CompletionRequest, EveryKey) {
  const CompletionRequest request = parsed(
      R"({"prompt": "a", "max_tokens": 0, "temperature": 0, "top_p": 0.5, "top_k": 3, "seed": -1, "stop": ["x", "y"],
          "n": 2, "logprobs": 1, "echo": true, "stream": true, "stream_options": {"include_usage": true},
          "frequency_penalty": 0, "presence_penalty": 0.0, "best_of": 2, "logit_bias": {}, "suffix": null})");
  EXPECT_EQ(request.max_tokens, 0);
  EXPECT_EQ(request.temperature, 0);
  EXPECT_EQ(request.top_p, 0.5);
  EXPECT_EQ(request.top_k, 3);
  EXPECT_EQ(request.seed, ~uint64_t{0});
  EXPECT_EQ(request.stop, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(request.n, 2);
  EXPECT_EQ(request.logprobs, 1);
  EXPECT_TRUE(request.echo && request.stream && request.include_usage);
  EXPECT_EQ(parsed(R"({"prompt": "a", "stop": "x"})").stop, (std::vector<std::string>{"x"}));
}

TEST(CompletionRequest, RefusesByKey) {
  const auto with = [](const std::string& more) { return R"({"prompt": "a", )" + more + "}"; };
  refused(with(R"("max_tokens": 0)"), {"max_tokens: expected at least 1 without echo"});
  refused(with(R"("max_tokens": 5000)"), {"max_tokens: expected a whole number from 0 to 4096", "5000"});
  refused(with(R"("max_tokens": "5")"), {"max_tokens: expected a whole number"});
  refused(with(R"("temperature": -1)"), {"temperature: expected a number from 0"});
  refused(with(R"("top_p": 0)"), {"top_p: expected"});
  refused(with(R"("top_p": 1.1)"), {"top_p: expected"});
  refused(with(R"("seed": 1.5)"), {"seed: expected a whole number"});
  refused(with(R"("stop": "")"), {"stop: expected texts of 1 to"});
  refused(with(R"("stop": 3)"), {"stop: expected text"});
  refused(with(R"("stop": [3])"), {"stop: expected text"});
  refused(with(R"("n": 0)"), {"n: expected a whole number from 1"});
  refused(with(R"("n": 1000)"), {"n: expected"});
  refused(with(R"("logprobs": 21)"), {"logprobs: expected a whole number from 0 to 20"});
  refused(with(R"("logprobs": true)"), {"logprobs: expected"});
  refused(with(R"("echo": 1)"), {"echo: expected true or false"});
  refused(with(R"("best_of": 2)"), {"best_of: expected as many as n"});
  refused(with(R"("frequency_penalty": 1)"), {"frequency_penalty: expected 0"});
  refused(with(R"("logit_bias": {"5": 1})"), {"logit_bias: expected an empty object"});
  refused(with(R"("suffix": "x")"), {"suffix: expected none"});
  refused(with(R"("stream_options": {"x": 1})"), {"stream_options", "'x'"});
  refused(with(R"("max_token": 5)"), {"'max_token' is not known"});
  refused(R"({"prompt": ["a", "b", "c"], "n": 100})", {"prompts x n", "300"});
}

TEST(CompletionRequest, BadJson) {
  refused("", {"body"});
  refused("[]", {"body: expected a JSON object"});
  refused(R"({"prompt": "a")", {"body"});
  refused(R"({"prompt": "a", "prompt": "b"})", {"body", "prompt"});
  refused(R"({"prompt": "\ud800"})", {"body"});
  refused("{\"prompt\": \"\xFF\"}", {"body"});
  refused(R"({"prompt": )" + std::string(100, '[') + std::string(100, ']') + "}", {"body"});
}

}  // namespace
}  // namespace siamese::serve
