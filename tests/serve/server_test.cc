// A real server on loopback, and clients of it.
#include "siamese/serve/server.h"

#include <atomic>
#include <thread>

#include "tests/models/small_lm.h"
#include "tests/support/errors.h"
#include <gtest/gtest.h>
#include <httplib.h>
#include <nlohmann/json.hpp>

namespace siamese::serve {
namespace {

using nlohmann::json;

class ServerTest : public ::testing::Test {
 protected:
  ServerTest() {
    models::ModelConfig config = models::small_config("siamese");
    config.vocab = 256;
    config.context = 32;
    model_ = models::make_lm(config, 5);
    data::DataConfig data;
    data.source = data::Source::text;
    words_ = eval::words_of_source(data);
  }
  ~ServerTest() override { stop(); }

  void start(ServerOptions options = {}) {
    options.port = 0;
    options.model = "small";
    options.connections = 16;
    server_ = std::make_unique<Server>(*model_, *words_, options);
    thread_ = std::thread([this] { server_->run([this] { return stopping_.load(); }); });
  }
  void stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
    server_.reset();
  }
  httplib::Client client() const {
    httplib::Client client("127.0.0.1", server_->port());
    client.set_read_timeout(300);
    return client;
  }
  // Status and body of a completion.
  std::pair<int, json> ask(const json& body, const httplib::Headers& headers = {}) const {
    const auto result = client().Post("/v1/completions", headers, body.dump(), "application/json");
    if (!result) return {0, json()};
    return {result->status, json::parse(result->body)};
  }

  std::unique_ptr<models::LanguageModel> model_;
  std::unique_ptr<eval::Words> words_;
  std::unique_ptr<Server> server_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

TEST_F(ServerTest, CompletesAsOpenAisClientsRead) {
  start();
  const auto [status, answer] = ask({{"prompt", "abc"}, {"max_tokens", 5}, {"temperature", 0}, {"logprobs", 2}});
  ASSERT_EQ(status, 200) << answer;
  EXPECT_EQ(answer["object"], "text_completion");
  EXPECT_EQ(answer["model"], "small");
  ASSERT_EQ(answer["choices"].size(), 1U);
  const json& choice = answer["choices"][0];
  EXPECT_EQ(choice["index"], 0);
  EXPECT_EQ(choice["finish_reason"], "length");
  EXPECT_EQ(choice["logprobs"]["tokens"].size(), 5U);
  EXPECT_EQ(choice["logprobs"]["token_logprobs"].size(), 5U);
  EXPECT_GE(choice["logprobs"]["top_logprobs"][0].size(), 1U);
  EXPECT_EQ(choice["logprobs"]["text_offset"][0], 0);
  EXPECT_EQ(answer["usage"], (json{{"prompt_tokens", 3}, {"completion_tokens", 5}, {"total_tokens", 8}}));
  // Text, its ids, and a list of both are the same question.
  const auto both = ask({{"prompt", {"abc", {97, 98, 99}}}, {"max_tokens", 5}, {"temperature", 0}}).second;
  ASSERT_EQ(both["choices"].size(), 2U) << both;
  for (const json& one : both["choices"]) EXPECT_EQ(one["text"], choice["text"]);
  EXPECT_EQ(both["choices"][1]["logprobs"], json());
}

TEST_F(ServerTest, AStreamIsTheSameText) {
  start();
  const json body = {{"prompt", "xy"}, {"max_tokens", 12}, {"temperature", 1}, {"seed", 3}, {"n", 2}};
  const auto whole = ask(body).second;
  json streamed = body;
  streamed["stream"] = true;
  streamed["stream_options"] = {{"include_usage", true}};
  const auto result = client().Post("/v1/completions", streamed.dump(), "application/json");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->get_header_value("Content-Type"), "text/event-stream");
  std::vector<std::string> texts(2);
  std::vector<int> finished(2);
  json usage;
  std::string last;
  std::istringstream lines(result->body);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    ASSERT_TRUE(line.starts_with("data: ")) << line;
    last = line.substr(6);
    if (last == "[DONE]") continue;
    const json event = json::parse(last);
    if (event["choices"].empty()) {
      usage = event["usage"];
      continue;
    }
    const json& choice = event["choices"][0];
    const auto index = choice["index"].get<size_t>();
    texts.at(index) += choice["text"].get<std::string>();
    if (!choice["finish_reason"].is_null()) ++finished.at(index);
  }
  EXPECT_EQ(last, "[DONE]");
  EXPECT_EQ(finished, (std::vector<int>{1, 1}));
  EXPECT_EQ(usage, whole["usage"]);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(texts[i], whole["choices"][i]["text"]);
}

TEST_F(ServerTest, BadRequestsGetAReason) {
  ServerOptions options;
  options.body_bytes = 2048;
  start(options);
  const auto status = [&](const std::string& body) {
    const auto result = client().Post("/v1/completions", body, "application/json");
    return std::pair(result ? result->status : 0,
                     result ? json::parse(result->body)["error"]["message"].get<std::string>() : "");
  };
  EXPECT_EQ(status("{").first, 400);
  EXPECT_NE(status("{").second.find("body"), std::string::npos);
  EXPECT_EQ(status(R"({"prompt": "\ud800"})").first, 400);
  EXPECT_EQ(status(R"({"prompt": [999]})").second, "prompt: expected tokens below model.vocab (256), got 999");
  EXPECT_EQ(status(R"({"prompt": ""})").second, "prompt: expected at least one token, got none");
  EXPECT_NE(status(R"({"prompt": ")" + std::string(40, 'a') + "\"}").second.find("at most 32 tokens"),
            std::string::npos);
  EXPECT_EQ(status(R"({"prompt": ")" + std::string(4000, 'a') + "\"}").first, 413);
  auto plain = client();
  EXPECT_EQ(plain.Get("/nothing")->status, 404);
  EXPECT_EQ(plain.Get("/v1/completions")->status, 404);
  EXPECT_EQ(plain.Post("/v1/completions", {{"Content-Encoding", "gzip"}}, "x", "application/json")->status, 415);
  EXPECT_EQ(ask({{"prompt", "still there"}, {"max_tokens", 1}}).first, 200);
}

TEST_F(ServerTest, ModelsAndHealth) {
  start();
  EXPECT_EQ(json::parse(client().Get("/v1/models")->body)["data"][0]["id"], "small");
  const json health = json::parse(client().Get("/health")->body);
  EXPECT_EQ(health["status"], "ok");
  EXPECT_EQ(health["waiting"], 0);
}

TEST_F(ServerTest, AToken) {
  ServerOptions options;
  options.token = "secret";
  start(options);
  const json body = {{"prompt", "a"}, {"max_tokens", 1}};
  EXPECT_EQ(ask(body).first, 401);
  EXPECT_EQ(ask(body, {{"Authorization", "Bearer wrong"}}).first, 401);
  EXPECT_EQ(ask(body, {{"Authorization", "Bearer secret"}}).first, 200);
  EXPECT_EQ(client().Get("/v1/models")->status, 401);
  EXPECT_EQ(client().Get("/health")->status, 200);
}

TEST_F(ServerTest, LimitsOfTimeAndQueue) {
  ServerOptions options;
  options.seconds = 0.05;
  options.queue = 8;
  options.limits.max_tokens = 1 << 20;
  start(options);
  EXPECT_EQ(ask({{"prompt", "a"}, {"max_tokens", 1 << 20}}).first, 504);
  EXPECT_EQ(ask({{"prompt", "a"}, {"max_tokens", 1}, {"n", 9}}).first, 429);
}

// A client that takes the first event and goes: its work ends, and others are answered.
TEST_F(ServerTest, AClientThatHangsUp) {
  ServerOptions options;
  options.limits.max_tokens = 1 << 20;
  start(options);
  const json body = {{"prompt", "a"}, {"max_tokens", 1 << 20}, {"stream", true}};
  httplib::Request request;
  request.method = "POST";
  request.path = "/v1/completions";
  request.body = body.dump();
  request.set_header("Content-Type", "application/json");
  int events = 0;
  request.content_receiver = [&](const char*, size_t, uint64_t, uint64_t) { return ++events < 2; };
  EXPECT_FALSE(client().send(request));
  EXPECT_EQ(events, 2);
  EXPECT_EQ(ask({{"prompt", "b"}, {"max_tokens", 2}}).first, 200);
  // It is gone once its thread has tried to write to it.
  for (int tries = 0; tries < 100000; ++tries) {
    if (json::parse(client().Get("/health")->body)["running"] == 0) return;
  }
  ADD_FAILURE() << "it goes on";
}

TEST_F(ServerTest, ManyAtOnceGetWhatTheyGetAlone) {
  start();
  const auto body = [](int i) {
    return json{{"prompt", std::string(1 + static_cast<size_t>(i) % 5, static_cast<char>('a' + i % 26))},
                {"max_tokens", 4 + i % 9},
                {"temperature", i % 2},
                {"seed", i}};
  };
  std::vector<json> alone;
  for (int i = 0; i < 24; ++i) alone.push_back(ask(body(i)).second["choices"]);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> clients;
  for (int client = 0; client < 8; ++client) {
    clients.emplace_back([&, client] {
      for (int i = client; i < 24; i += 8) {
        for (int round = 0; round < 3; ++round) {
          if (ask(body(i)).second["choices"] != alone[static_cast<size_t>(i)]) ++wrong;
        }
      }
    });
  }
  for (std::thread& one : clients) one.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(ServerTest, EndsWhileSomebodyWaits) {
  ServerOptions options;
  options.limits.max_tokens = 1 << 20;
  start(options);
  std::thread waits([&] { EXPECT_EQ(ask({{"prompt", "a"}, {"max_tokens", 1 << 20}}).first, 503); });
  while (json::parse(client().Get("/health")->body)["running"] == 0) {
  }
  stopping_ = true;
  waits.join();
  stop();
}

TEST_F(ServerTest, APortThatIsTaken) {
  start();
  ServerOptions same;
  same.port = server_->port();
  siamese::testing::expect_error<SystemError>([&] { Server(*model_, *words_, same); }, {"cannot listen", "taken"});
}

}  // namespace
}  // namespace siamese::serve
