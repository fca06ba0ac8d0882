// The verb serve as a user runs it: the port it prints, an answer, a clean end.
#include "tests/cli/background.h"
#include "tests/cli/http.h"

namespace siamese::cli {
namespace {

class ServeVerb : public CommandTest {
 protected:
  int port() const { return printed_port(read("out.txt")); }
  static std::string completion(const std::string& body) {
    return "POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + body;
  }
};

TEST_F(ServeVerb, AnswersAndEndsOnASignal) {
  ASSERT_EQ(run(tiny + "--out run").exit_code, 0);
  const std::string made = run("generate run --prompt '1+2=' --max-tokens 3").out;
  Background server(folder, "serve run --port 0");
  ASSERT_TRUE(server.wait_until([&] { return port() > 0; })) << read("error.txt");
  EXPECT_TRUE(read("out.txt").starts_with("serving run at http://127.0.0.1:")) << read("out.txt");
  const std::string answer = ask(port(), completion(R"({"prompt": "1+2=", "max_tokens": 3, "temperature": 0})"));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer;
  EXPECT_NE(answer.find("\"text\":\"" + made.substr(0, made.size() - 1) + "\""), std::string::npos) << answer << made;
  EXPECT_TRUE(ask(port(), completion("{")).starts_with("HTTP/1.1 400"));
  EXPECT_TRUE(ask(port(), "nonsense\r\n\r\n").starts_with("HTTP/1.1 400"));
  server.send(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
  EXPECT_EQ(read("error.txt"), "");
}

TEST_F(ServeVerb, BadUsageIsOneLine) {
  ASSERT_EQ(run(tiny + "--out run").exit_code, 0);
  expect_refusal("serve nowhere", 3, "nowhere");
  expect_refusal("serve run --port 0 --host 203.0.113.1", 1, "cannot listen at 203.0.113.1");
  write("token", "two words\n");
  expect_refusal("serve run --port 0 --token-file token", 3, "token: expected a token on its first line");
}

}  // namespace
}  // namespace siamese::cli
