// One request on its way: what the engine's thread has made of it so far, and the thread that answers its client.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "siamese/eval/words.h"
#include "siamese/serve/completion_request.h"

namespace siamese::serve {

// A token with its likelihood.
struct TokenScore {
  std::string text;
  std::optional<double> logprob;                    // none of the first of a text
  std::vector<std::pair<std::string, double>> top;  // the likeliest and the token itself, by likelihood
};

// A piece of one choice.
struct Piece {
  size_t choice = 0;
  std::string text;
  std::vector<TokenScore> scores;  // with logprobs
  std::optional<eval::Finish> finish;
};

class Job {
 public:
  using Clock = std::chrono::steady_clock;

  // `prompts`: the tokens of each prompt of the request.
  Job(CompletionRequest request, std::vector<std::vector<int64_t>> prompts);

  const CompletionRequest& request() const { return request_; }
  size_t choices() const { return prompts_.size() * static_cast<size_t>(request_.n); }
  const std::vector<int64_t>& prompt(size_t choice) const { return prompts_[choice / static_cast<size_t>(request_.n)]; }
  int64_t prompt_tokens() const;  // of all prompts, each once

  // The engine's side.
  void tell(Piece piece, int64_t made_tokens);
  void fail(std::string why);  // no more will come
  bool cancelled() const;

  // The client's side. The next piece; none when all choices have finished, it failed, or `deadline` has passed.
  std::optional<Piece> next(Clock::time_point deadline);
  void cancel();  // nobody listens any more
  bool finished() const;
  std::string failure() const;  // "": none
  int64_t made_tokens() const;

 private:
  const CompletionRequest request_;
  const std::vector<std::vector<int64_t>> prompts_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Piece> pieces_;
  size_t finished_ = 0;  // choices whose last piece was taken
  int64_t made_tokens_ = 0;
  std::string failure_;
  bool cancelled_ = false;
};

}  // namespace siamese::serve
