#include "siamese/serve/watch_server.h"

#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <httplib.h>

#include "siamese/base/check.h"
#include "siamese/base/utf8.h"
#include "siamese/report/live_page.h"
#include "siamese/report/live_runs.h"
#include "siamese/report/page.h"
#include "siamese/report/report.h"

namespace siamese::serve {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kHtml = "text/html; charset=utf-8";
constexpr const char* kPlain = "text/plain; charset=utf-8";
constexpr auto kBeat = std::chrono::seconds(15);          // a line that says nothing, so that a lost reader is noticed
constexpr auto kGather = std::chrono::milliseconds(200);  // changes of this time go out together
constexpr auto kStopAsked = std::chrono::milliseconds(100);

void say(httplib::Response& response, int status, const std::string& line) {
  response.status = status;
  response.set_content(printable(line) + "\n", kPlain);
}

std::optional<uint64_t> run_number(const httplib::Request& request) {
  const std::string text = request.matches[1];
  uint64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(id) : std::nullopt;
}

}  // namespace

bool names_this_machine(std::string_view host) {
  const size_t bracket = host.find(']');
  const size_t colon = host.find(':', bracket == std::string_view::npos ? 0 : bracket);
  const std::string_view name = host.substr(0, colon);
  if (colon != std::string_view::npos &&
      host.substr(colon + 1).find_first_not_of("0123456789") != std::string_view::npos) {
    return false;
  }
  return name == "127.0.0.1" || name == "localhost" || name == "[::1]";
}

class WatchServer::Door {
 public:
  explicit Door(const WatchOptions& options) : options_(options), runs_(options.sources) {
    http_.set_socket_options([](socket_t made) {  // as in server.cc: a living server's port is not shared
      const int yes = 1;
      setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    http_.set_payload_max_length(0);
    http_.set_keep_alive_timeout(5);
    http_.set_tcp_nodelay(true);
    http_.set_default_headers({{"Cache-Control", "no-store"},
                               {"X-Content-Type-Options", "nosniff"},
                               {"X-Frame-Options", "DENY"},
                               {"Referrer-Policy", "no-referrer"},
                               {"Cross-Origin-Resource-Policy", "same-origin"}});
    http_.new_task_queue = [threads = options.connections] { return new httplib::ThreadPool(threads); };
    add_routes();
    port_ = options_.port;
    const bool bound =
        port_ == 0 ? (port_ = http_.bind_to_any_port("127.0.0.1")) > 0 : http_.bind_to_port("127.0.0.1", port_);
    if (!bound) {
      throw SystemError(
          fmt::format("cannot listen at 127.0.0.1 port {}: it is taken (--port 0 takes a free one)", options_.port));
    }
    listener_ = std::thread([this] {
      http_.listen_after_bind();
      ended_ = true;
    });
    while (!http_.is_running() && !ended_) std::this_thread::yield();  // the library forgets an earlier stop()
  }
  ~Door() {
    closing_ = true;
    announce();
    http_.stop();
    if (listener_.joinable()) listener_.join();
  }

  int port() const { return port_; }
  size_t runs() const { return runs_.size(); }

  void run(const std::function<bool()>& stop) {
    const auto pause = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options_.seconds));
    while (!stop()) {
      const auto progress = runs_.poll();
      if (progress.changed) announce();
      if (progress.more) continue;
      for (const auto until = Clock::now() + pause; Clock::now() < until && !stop();) {
        std::this_thread::sleep_for(std::min<Clock::duration>(kStopAsked, until - Clock::now()));
      }
    }
  }

 private:
  void announce() {
    {
      const std::lock_guard lock(mutex_);
      ++changes_;
    }
    changed_.notify_all();
  }

  void add_routes() {
    using httplib::Request;
    using httplib::Response;
    http_.set_pre_routing_handler([](const Request& request, Response& response) {
      const bool known = names_this_machine(request.get_header_value("Host"));
      const bool reads = request.method == "GET" || request.method == "HEAD";
      if (known && reads) return httplib::Server::HandlerResponse::Unhandled;
      known ? say(response, 405, "this page is read-only: expected GET")
            : say(response, 403, "Host: expected 127.0.0.1 or localhost");
      response.set_header("Connection", "close");
      return httplib::Server::HandlerResponse::Handled;
    });
    http_.Get("/", [this](const Request&, Response& response) {
      response.set_header("Content-Security-Policy",
                          std::string(report::content_policy(report::PageUse::live)) + "; frame-ancestors 'none'");
      response.set_content(report::live_page(runs_.title()), kHtml);
    });
    http_.Get("/events", [this](const Request&, Response& response) { events(response); });
    http_.Get(R"(/depth/(\d+))", [this](const Request& request, Response& response) {
      const auto id = run_number(request);
      const auto depth = id ? runs_.depth(*id) : std::nullopt;
      depth ? response.set_content(*depth, "application/json") : say(response, 404, "no such run");
    });
    http_.Get(R"(/report/(\d+))", [this](const Request& request, Response& response) {
      const auto id = run_number(request);
      const auto folder = id ? runs_.folder(*id) : std::nullopt;
      if (!folder) return say(response, 404, "no such run");
      response.set_header("Content-Security-Policy",
                          std::string(report::content_policy(report::PageUse::offline)) + "; frame-ancestors 'none'");
      response.set_content(report::report_page({*folder}), kHtml);
    });
    http_.set_error_handler([](const Request& request, Response& response) {
      if (response.body.empty()) say(response, response.status, request.method + " " + request.path + ": not here");
    });
    http_.set_exception_handler([](const Request&, Response& response, const std::exception_ptr& error) {
      try {
        std::rethrow_exception(error);
      } catch (const std::exception& known) {  // a run that was deleted between two looks
        say(response, 500, known.what());
      } catch (...) {
        say(response, 500, "unknown error");
      }
    });
  }

  // What one page has been told, and when it was last told anything.
  struct Reader {
    report::Seen seen;
    uint64_t changes = 0;
    Clock::time_point spoken = Clock::now();
    bool first = true;
  };

  void events(httplib::Response& response) {
    if (++streams_ > options_.streams) {
      --streams_;
      return say(response, 503, "too many open pages");
    }
    const auto reader = std::make_shared<Reader>();
    const auto provide = [this, reader](size_t, httplib::DataSink& sink) {
      std::string event;
      if (std::exchange(reader->first, false)) event = "retry: 2000\n\n";
      event += next_events(*reader);
      reader->spoken = Clock::now();
      return !closing_ && sink.write(event.data(), event.size());
    };
    response.set_chunked_content_provider("text/event-stream", provide, [this](bool) { --streams_; });
  }

  // Waits for something to say, a beat at most.
  std::string next_events(Reader& reader) {
    for (;;) {
      std::string message = runs_.news(reader.seen);
      if (!message.empty()) return "data: " + std::move(message) + "\n\n";
      const auto beat = reader.spoken + kBeat;
      {
        std::unique_lock lock(mutex_);
        changed_.wait_until(lock, beat, [&] { return changes_ != reader.changes || closing_; });
        reader.changes = changes_;
      }
      if (closing_) return ": the server ends\n\n";
      if (Clock::now() >= beat) return ": still here\n\n";
      std::this_thread::sleep_for(kGather);
    }
  }

  const WatchOptions options_;
  report::LiveRuns runs_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t changes_ = 0;
  std::atomic<bool> closing_ = false, ended_ = false;
  std::atomic<size_t> streams_ = 0;
  httplib::Server http_;
  std::thread listener_;
  int port_ = 0;
};

WatchServer::WatchServer(const WatchOptions& options) : door_(std::make_unique<Door>(options)) {}

WatchServer::~WatchServer() = default;

int WatchServer::port() const { return door_->port(); }
size_t WatchServer::runs() const { return door_->runs(); }
void WatchServer::run(const std::function<bool()>& stop) { door_->run(stop); }

}  // namespace siamese::serve
