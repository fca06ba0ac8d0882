// The door of the live page: what it answers, whom it refuses, how it ends.
#include "siamese/serve/watch_server.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/support/errors.h"
#include <gtest/gtest.h>
#include <httplib.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "siamese/runs/run_info.h"
#include "siamese/runs/step_record.h"

namespace siamese::serve {
namespace {

namespace fs = std::filesystem;

class WatchServerTest : public ::testing::Test {
 protected:
  WatchServerTest() {
    root_ = fs::temp_directory_path() / ("siamese_watch_" + std::to_string(::getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_ / "run");
    runs::write_run_file(root_ / "run", {.scheme = "pre", .label = "pre", .steps = 100});
    add_step(1, 2.5);
  }
  ~WatchServerTest() override {
    stop();
    fs::remove_all(root_);
  }
  void add_step(int64_t step, double loss) const {
    runs::StepRecord record;
    record.step = step;
    record.loss = loss;
    record.tokens_per_s = record.samples_per_s = record.step_ms = 1;
    std::ofstream(root_ / "run" / "metrics.jsonl", std::ios::app) << runs::to_line(record) << '\n';
  }
  void start(size_t streams = 4) {
    WatchOptions options;
    options.sources = {root_};
    options.port = 0;
    options.seconds = 0.05;
    options.connections = 8;
    options.streams = streams;
    server_ = std::make_unique<WatchServer>(options);
    thread_ = std::thread([this] { server_->run([this] { return stopping_.load(); }); });
  }
  void stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
    server_.reset();
  }
  httplib::Client client() const { return httplib::Client("127.0.0.1", server_->port()); }
  // Reads events until `enough` says so of what came.
  std::string events(const std::function<bool(const std::string&)>& enough) const {
    std::string all;
    client().Get("/events", [&](const char* data, size_t size) {
      all.append(data, size);
      return !enough(all);
    });
    return all;
  }

  fs::path root_;
  std::unique_ptr<WatchServer> server_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

TEST_F(WatchServerTest, ThePageMayAskThisServerAlone) {
  start();
  const auto page = client().Get("/");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->status, 200);
  EXPECT_NE(page->body.find("EventSource"), std::string::npos);
  const std::string policy = page->get_header_value("Content-Security-Policy");
  EXPECT_NE(policy.find("default-src 'none'"), std::string::npos);
  EXPECT_NE(policy.find("connect-src 'self'"), std::string::npos);
  EXPECT_NE(policy.find("frame-ancestors 'none'"), std::string::npos);
  EXPECT_EQ(page->get_header_value("X-Content-Type-Options"), "nosniff");
  EXPECT_FALSE(page->has_header("Access-Control-Allow-Origin"));
}

TEST_F(WatchServerTest, EventsBringWhatIsThereAndThenWhatIsNew) {
  start();
  bool added = false;
  const std::string all = events([&](const std::string& text) {
    if (!added && text.find("\"step\":1,") != std::string::npos) {
      added = true;
      add_step(2, 1.25);
    }
    return text.find("\"step\":2,") != std::string::npos;
  });
  EXPECT_TRUE(added);
  EXPECT_NE(all.find("1.25"), std::string::npos) << all;
}

TEST_F(WatchServerTest, ReportsAndProfilesByNumber) {
  start();
  events([](const std::string& text) { return text.find("\"id\":1") != std::string::npos; });
  const auto report = client().Get("/report/1");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->status, 200);
  EXPECT_NE(report->body.find("id=\"report-data\""), std::string::npos);
  EXPECT_EQ(report->get_header_value("Content-Security-Policy").find("connect-src"), std::string::npos);
  EXPECT_FALSE(fs::exists(root_ / "run" / "report.html"));  // read-only
  EXPECT_EQ(client().Get("/depth/1")->body.substr(0, 9), "{\"depth\":");
  for (const char* const path :
       {"/report/2", "/depth/99999999999999999999999", "/depth/x", "/../run/run.json", "/run.json"}) {
    EXPECT_EQ(client().Get(path)->status, 404) << path;
  }
}

TEST_F(WatchServerTest, OtherNamesAndOtherVerbsAreRefused) {
  start();
  EXPECT_EQ(client().Get("/", {{"Host", "evil.example"}})->status, 403);
  EXPECT_EQ(client().Get("/events", {{"Host", "evil.example:80"}})->status, 403);
  EXPECT_EQ(client().Get("/", {{"Host", "localhost:1"}})->status, 200);
  EXPECT_EQ(client().Delete("/")->status, 405);
  EXPECT_EQ(client().Put("/events", "", "text/plain")->status, 405);
}

TEST_F(WatchServerTest, TooManyPagesAreToldAndTheOthersGoOn) {
  start(1);
  events([&](const std::string&) {
    const auto second = client().Get("/events");
    EXPECT_TRUE(second && second->status == 503);
    EXPECT_EQ(client().Get("/")->status, 200);
    return true;
  });
}

TEST_F(WatchServerTest, APageThatListensDoesNotHoldTheEnd) {
  start();
  std::atomic<bool> heard = false;
  std::thread listener([&] {
    events([&](const std::string&) {
      heard = true;
      return false;
    });
  });
  while (!heard) std::this_thread::yield();
  stop();
  listener.join();
}

TEST_F(WatchServerTest, ATakenPortIsOneLine) {
  start();
  WatchOptions options;
  options.sources = {root_};
  options.port = server_->port();
  testing::expect_error<SystemError>([&] { WatchServer second(options); },
                                     {"cannot listen at 127.0.0.1 port", "--port 0"});
}

TEST(WatchHost, OnlyThisMachine) {
  for (const char* const host : {"127.0.0.1", "127.0.0.1:8010", "localhost:8010", "[::1]:8010", "[::1]"}) {
    EXPECT_TRUE(names_this_machine(host)) << host;
  }
  for (const char* const host : {"", "evil.example", "127.0.0.1.evil.example", "localhost.evil:80", "127.0.0.1:80x",
                                 "127.0.0.2:80", "[::1].evil", "localhost:80@evil"}) {
    EXPECT_FALSE(names_this_machine(host)) << host;
  }
}

}  // namespace
}  // namespace siamese::serve
