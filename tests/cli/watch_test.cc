// The verb watch as a user runs it: the address it prints, an answer while a run trains, a clean end, refusals.
#include "tests/cli/background.h"
#include "tests/cli/http.h"

namespace siamese::cli {
namespace {

class WatchVerb : public CommandTest {
 protected:
  int port() const { return printed_port(read("out.txt")); }
  static std::string get(int port, const std::string& path, const std::string& until = "") {
    return ask(port, "GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", until);
  }
};

TEST_F(WatchVerb, ShowsARunAndEndsOnSignals) {
  ASSERT_EQ(run(tiny + "--out runs/one").exit_code, 0);
  for (const int signal : {SIGTERM, SIGINT}) {
    std::filesystem::remove(folder / "out.txt");  // of the one before
    Background server(folder, "watch runs --port 0 --interval 0.05");
    ASSERT_TRUE(server.wait_until([&] { return port() > 0; })) << read("error.txt");
    EXPECT_TRUE(read("out.txt").starts_with("watching at http://127.0.0.1:")) << read("out.txt");
    EXPECT_NE(get(port(), "/").find("text/html"), std::string::npos);
    const std::string events = get(port(), "/events", "\"name\":\"one\"");
    EXPECT_NE(events.find("text/event-stream"), std::string::npos) << events;
    EXPECT_NE(events.find("\"state\":\"finished\""), std::string::npos) << events;
    server.send(signal);
    EXPECT_EQ(server.wait(), 0);
    EXPECT_EQ(read("error.txt"), "");
  }
  EXPECT_FALSE(exists("runs/one/report.html"));
}

TEST_F(WatchVerb, TakesNextToNothingWhenNothingChanges) {
  ASSERT_EQ(run(tiny + "--out runs/one").exit_code, 0);
  for (int copy = 0; copy < 50; ++copy) {
    std::filesystem::copy(folder / "runs/one", folder / ("runs/copy" + std::to_string(copy)),
                          std::filesystem::copy_options::recursive);
  }
  Background server(folder, "watch runs --port 0 --interval 0.1");  // ten times as often as by default
  ASSERT_TRUE(server.wait_until([&] { return port() > 0; })) << read("error.txt");
  get(port(), "/events", "\"reading\":false");
  const double before = server.processor_seconds();
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(server.wait_until([&] { return std::chrono::steady_clock::now() - begin > std::chrono::seconds(2); }));
  EXPECT_LT(server.processor_seconds() - before,
            0.2);  // 51 runs: a tenth of a core at ten looks a second at the very most
}

TEST_F(WatchVerb, BadUsageIsOneLine) {
  ASSERT_EQ(run(tiny + "--out run").exit_code, 0);
  write("file", "");
  expect_refusal("watch", 2, "DIRS is required");
  expect_refusal("watch nowhere", 3, "nowhere: expected a run or a folder of runs, there is nothing");
  expect_refusal("watch file", 3, "file: expected a run or a folder of runs, got a file");
  expect_refusal("watch run/step4", 3, "run/step4: expected a run or a folder of runs, got a checkpoint");
  expect_refusal("watch run --port 70000", 2, "--port");
  expect_refusal("watch run --host 0.0.0.0", 2, "--host");  // this machine alone
}

}  // namespace
}  // namespace siamese::cli
