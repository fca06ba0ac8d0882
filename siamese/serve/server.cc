#include "siamese/serve/server.h"

#include <atomic>
#include <chrono>
#include <thread>

#include <fmt/format.h>
#include <httplib.h>
#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/eval/generate.h"
#include "siamese/io/strict_json.h"
#include "siamese/serve/bearer.h"
#include "siamese/serve/completion_response.h"
#include "siamese/serve/engine.h"

namespace siamese::serve {
namespace {

constexpr const char* kJson = "application/json";
constexpr const char* kInvalid = "invalid_request_error";
constexpr const char* kServer = "server_error";

void refuse(httplib::Response& response, int status, const std::string& message, const char* type) {
  response.status = status;
  response.set_content(error_json(message, type), kJson);
}

constexpr int kBacklog = 1024;  // clients that may knock at the same moment; the library's own is 5

int64_t seconds_since_1970() {
  using std::chrono::system_clock;
  return std::chrono::duration_cast<std::chrono::seconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace

class Server::Door {
 public:
  Door(const models::LanguageModel& model, const eval::Words& words, const ServerOptions& options)
      : options_(options), engine_(model, words, options.queue), created_(seconds_since_1970()) {
    // An earlier server's port may be taken over, but no living one's: the library's own options would share it.
    http_.set_socket_options([this](socket_t made) {
      const int yes = 1;
      setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
      socket_ = made;
    });
    http_.set_payload_max_length(options.body_bytes);
    http_.set_keep_alive_timeout(5);
    http_.set_keep_alive_max_count(1000);
    http_.set_tcp_nodelay(true);
    http_.new_task_queue = [threads = options.connections] { return new httplib::ThreadPool(threads); };
    add_routes();
    listen();
    listener_ = std::thread([this] {
      http_.listen_after_bind();
      ended_ = true;
    });
    // The library forgets a stop() that comes before it listens.
    while (!http_.is_running() && !ended_) std::this_thread::yield();
  }
  ~Door() {
    engine_.close();
    http_.stop();
    if (listener_.joinable()) listener_.join();
  }

  int port() const { return port_; }
  void run(const std::function<bool()>& stop) { engine_.run(stop); }

 private:
  void listen() {
    port_ = options_.port;
    const bool bound = options_.port == 0 ? (port_ = http_.bind_to_any_port(options_.host)) > 0
                                          : http_.bind_to_port(options_.host, options_.port);
    if (!bound) {
      throw SystemError(fmt::format("cannot listen at {} port {}: it is taken, or no address of this machine",
                                    options_.host, options_.port));
    }
    ::listen(socket_, kBacklog);
  }

  void add_routes() {
    using httplib::Request;
    using httplib::Response;
    http_.set_pre_routing_handler([this](const Request& request, Response& response) {
      return admitted(request, response) ? httplib::Server::HandlerResponse::Unhandled
                                         : httplib::Server::HandlerResponse::Handled;
    });
    http_.Get("/health", [this](const Request&, Response& response) {
      const nlohmann::ordered_json state = {
          {"status", "ok"}, {"model", options_.model}, {"running", engine_.running()}, {"waiting", engine_.waiting()}};
      response.set_content(io::json_text(state), kJson);
    });
    http_.Get("/v1/models",
              [this](const Request&, Response& response) { response.set_content(models_json(head("")), kJson); });
    http_.Post("/v1/completions", [this](const Request& request, Response& response) { complete(request, response); });
    http_.set_error_handler([](const Request& request, Response& response) {
      if (!response.body.empty()) return;
      const std::string what = response.status == 404   ? request.method + " " + request.path + " is not known here"
                               : response.status == 413 ? "the body is too large"
                                                        : fmt::format("status {}", response.status);
      response.set_content(error_json(what, kInvalid), kJson);
    });
    http_.set_exception_handler([](const Request&, Response& response, const std::exception_ptr& error) {
      try {
        std::rethrow_exception(error);
      } catch (const std::exception& known) {
        refuse(response, 500, known.what(), kServer);
      } catch (...) {
        refuse(response, 500, "unknown error", kServer);
      }
    });
  }

  // Before the body is read. What is refused here ends the connection: its body would be taken for the next request.
  bool admitted(const httplib::Request& request, httplib::Response& response) const {
    const auto refused = [&](int status, const std::string& why) {
      refuse(response, status, why, kInvalid);
      response.set_header("Connection", "close");
      return false;
    };
    if (!options_.token.empty() && request.path != "/health" &&
        !bears(request.get_header_value("Authorization"), options_.token)) {
      response.set_header("WWW-Authenticate", "Bearer");
      return refused(401, "Authorization: expected 'Bearer' and the token of this server");
    }
    if (request.method != "POST") return true;
    // The library limits only bodies whose length is known before they come.
    if (request.has_header("Content-Encoding")) return refused(415, "Content-Encoding: expected none");
    if (request.has_header("Transfer-Encoding") || !request.has_header("Content-Length")) {
      return refused(411, "Content-Length: expected, got none");
    }
    return true;
  }

  AnswerHead head(const std::string& id) const { return {id, options_.model, created_}; }

  std::shared_ptr<Job> make_job(const std::string& body) {
    CompletionRequest request = parse_completion_request(body, options_.limits);
    const eval::Words& words = engine_.words();
    std::vector<std::vector<int64_t>> prompts;
    for (const Prompt& prompt : request.prompts) {
      const auto* const text = std::get_if<std::string>(&prompt);
      prompts.push_back(text != nullptr ? words.encode(*text, words.special())
                                        : std::get<std::vector<int64_t>>(prompt));
      eval::check_prompt(engine_.model(), prompts.back(), "prompt");
    }
    return std::make_shared<Job>(std::move(request), std::move(prompts));
  }

  void complete(const httplib::Request& request, httplib::Response& response) {
    std::shared_ptr<Job> job;
    try {
      job = make_job(request.body);
    } catch (const Error& error) {
      return refuse(response, 400, error.what(), kInvalid);
    }
    if (!engine_.submit(job)) {
      if (engine_.closed()) return refuse(response, 503, kShuttingDown, kServer);
      response.set_header("Retry-After", "1");
      return refuse(response, 429, "too many requests wait already", "rate_limit_error");
    }
    const auto deadline = Job::Clock::now() + std::chrono::duration_cast<Job::Clock::duration>(
                                                  std::chrono::duration<double>(options_.seconds));
    AnswerHead answer{fmt::format("cmpl-{}", ++answers_), options_.model, seconds_since_1970()};
    if (job->request().stream) return stream(job, answer, deadline, response);
    std::vector<ChoiceText> choices(job->choices());
    while (auto piece = job->next(deadline)) choices[piece->choice].add(std::move(*piece));
    if (job->finished()) return response.set_content(completion_json(answer, *job, choices), kJson);
    const std::string failure = job->failure();
    job->cancel();
    if (failure.empty()) return refuse(response, 504, "the time limit of a request has passed", kServer);
    refuse(response, 503, failure, kServer);
  }

  // An event for each piece, as it comes. A client that is gone ends the work for it.
  static void stream(const std::shared_ptr<Job>& job, const AnswerHead& answer, Job::Clock::time_point deadline,
                     httplib::Response& response) {
    const auto sent = std::make_shared<std::vector<size_t>>(job->choices());
    const auto provide = [job, answer, deadline, sent](size_t, httplib::DataSink& sink) {
      const auto send = [&](const std::string& data) {
        const std::string event = "data: " + data + "\n\n";
        return sink.write(event.data(), event.size());
      };
      const auto piece = job->next(deadline);
      if (piece) {
        if (piece->text.empty() && piece->scores.empty() && !piece->finish) return true;
        const std::string event =
            chunk_json(answer, *piece, job->request().logprobs.has_value(), (*sent)[piece->choice]);
        (*sent)[piece->choice] += character_count(piece->text);
        return send(event);
      }
      const std::string failure = job->failure();
      if (!job->finished()) {
        send(error_json(failure.empty() ? "the time limit of a request has passed" : failure, kServer));
      } else if (job->request().include_usage) {
        send(usage_chunk_json(answer, *job));
      }
      send("[DONE]");
      sink.done();
      return true;
    };
    response.set_chunked_content_provider("text/event-stream", provide, [job](bool) { job->cancel(); });
  }

  const ServerOptions options_;
  Engine engine_;
  const int64_t created_;
  httplib::Server http_;
  socket_t socket_ = INVALID_SOCKET;
  std::thread listener_;
  int port_ = 0;
  std::atomic<uint64_t> answers_ = 0;
  std::atomic<bool> ended_ = false;
};

Server::Server(const models::LanguageModel& model, const eval::Words& words, const ServerOptions& options)
    : door_(std::make_unique<Door>(model, words, options)) {}

Server::~Server() = default;

int Server::port() const { return door_->port(); }

void Server::run(const std::function<bool()>& stop) { door_->run(stop); }

}  // namespace siamese::serve
