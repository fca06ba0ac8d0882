#include "siamese/serve/engine.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include "siamese/base/check.h"
#include "siamese/eval/generate.h"
#include "siamese/ops/operand.h"

namespace siamese::serve {
namespace {

constexpr int64_t kScoredAtOnce = 64;  // rows of logits in memory
constexpr auto kPatience = std::chrono::milliseconds(100);

std::vector<double> as_doubles(const at::Tensor& row) {
  const at::Tensor values = row.to(at::kCPU, at::kDouble).contiguous();
  const double* const data = values.const_data_ptr<double>();
  return {data, data + values.numel()};
}

double log_sum_exp(const std::vector<double>& logits) {
  const double top = *std::max_element(logits.begin(), logits.end());
  const double sum = std::accumulate(logits.begin(), logits.end(), 0.0,
                                     [&](double all, double logit) { return all + std::exp(logit - top); });
  return top + std::log(sum);
}

TokenScore score_of(const eval::Words& words, const std::vector<double>& logits, int64_t token, int64_t count) {
  const double all = log_sum_exp(logits);
  const auto logprob = [&](int64_t id) { return logits[static_cast<size_t>(id)] - all; };
  TokenScore score{words.token_text(token), logprob(token), {}};
  std::vector<int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto most = std::min(static_cast<size_t>(count), order.size());
  const auto likelier = [&](int64_t a, int64_t b) {
    const double first = logits[static_cast<size_t>(a)], second = logits[static_cast<size_t>(b)];
    return first != second ? first > second : a < b;
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(most), order.end(), likelier);
  order.resize(most);
  if (count > 0 && std::find(order.begin(), order.end(), token) == order.end()) order.push_back(token);
  for (const int64_t id : order) {
    const std::string text = words.token_text(id);
    // Two tokens may have one text (bytes of different characters): the likelier is told.
    const bool told =
        std::any_of(score.top.begin(), score.top.end(), [&](const auto& one) { return one.first == text; });
    if (!told) score.top.emplace_back(text, logprob(id));
  }
  return score;
}

}  // namespace

struct Engine::Sequence {
  std::shared_ptr<Job> job;
  size_t choice = 0;
  eval::Sampling sampling;
  eval::Continuation text;
  int64_t made = 0;
  int64_t last = 0;  // the token made last

  const CompletionRequest& request() const { return job->request(); }
  void tell(std::string piece, std::vector<TokenScore> scores, std::optional<eval::Finish> finish, int64_t tokens) {
    job->tell({choice, std::move(piece), std::move(scores), finish}, tokens);
  }
};

Engine::Engine(const models::LanguageModel& model, const eval::Words& words, size_t queue)
    : model_(model), words_(words), queue_(queue), batch_(model) {}

Engine::~Engine() = default;

bool Engine::submit(std::shared_ptr<Job> job) {
  const CompletionRequest& request = job->request();
  const std::lock_guard lock(mutex_);
  if (closed_ || waiting_.size() + job->choices() > queue_) return false;
  for (size_t choice = 0; choice < job->choices(); ++choice) {
    eval::Sampling sampling{.max_tokens = request.max_tokens,
                            .temperature = request.temperature,
                            .top_k = request.top_k,
                            .top_p = request.top_p,
                            .seed = request.seed};
    waiting_.push_back({job, choice, sampling, eval::Continuation(words_, job->prompt(choice), request.stop)});
  }
  asked_.notify_all();
  return true;
}

void Engine::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  asked_.notify_all();
}

bool Engine::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

size_t Engine::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

void Engine::run(const std::function<bool()>& stop) {
  const c10::InferenceMode inference;
  const ops::RoundWeightsOnce rounded;
  while (true) {
    if (stop()) close();
    if (closed()) break;
    admit(active_.empty());
    if (!active_.empty()) step();
    running_ = active_.size();
  }
  for (const Sequence& sequence : active_) sequence.job->fail(kShuttingDown);
  while (!active_.empty()) drop(active_.size() - 1);
  const std::lock_guard lock(mutex_);
  for (const Sequence& sequence : waiting_) sequence.job->fail(kShuttingDown);
  waiting_.clear();
  running_ = 0;
}

void Engine::admit(bool idle) {
  while (!batch_.full()) {
    std::unique_lock lock(mutex_);
    if (idle && waiting_.empty()) {
      asked_.wait_for(lock, kPatience, [&] { return !waiting_.empty() || closed_; });
    }
    if (waiting_.empty() || closed_) return;
    Sequence next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    idle = false;
    if (!next.job->cancelled()) begin(std::move(next));
  }
}

// What goes wrong with one request (no memory, weights that are not finite) is told to its client alone.
void Engine::begin(Sequence sequence) {
  const size_t before = batch_.size();
  try {
    const at::Tensor states = batch_.join(sequence.job->prompt(sequence.choice));
    if (sequence.request().echo) score_prompt(sequence, states);
    const at::Tensor logits = model_.logits(states.narrow(0, states.size(0) - 1, 1))[0];
    if (sequence.sampling.max_tokens > 0 && take_token(sequence, logits)) {
      active_.push_back(std::move(sequence));
      return;
    }
  } catch (const std::exception& error) {
    sequence.job->fail(error.what());
  }
  if (batch_.size() > before) batch_.leave(before);
}

// The prompt as part of the answer, with the likelihood of each of its tokens but the first.
void Engine::score_prompt(Sequence& sequence, const at::Tensor& states) {
  const std::vector<int64_t>& prompt = sequence.job->prompt(sequence.choice);
  const CompletionRequest& request = sequence.request();
  std::vector<TokenScore> scores;
  if (request.logprobs) {
    scores.push_back({words_.token_text(prompt.front()), std::nullopt, {}});
    for (int64_t first = 0; first + 1 < states.size(0); first += kScoredAtOnce) {
      const int64_t count = std::min(kScoredAtOnce, states.size(0) - 1 - first);
      const at::Tensor logits = model_.logits(states.narrow(0, first, count));
      for (int64_t i = 0; i < count; ++i) {
        scores.push_back(
            score_of(words_, as_doubles(logits[i]), prompt[static_cast<size_t>(first + i + 1)], *request.logprobs));
      }
    }
  }
  std::string text;
  const size_t of = sequence.choice / static_cast<size_t>(request.n);
  if (const auto* const given = std::get_if<std::string>(&request.prompts[of])) {
    text = *given;
  } else {
    const auto read = words_.text_after({});
    for (const int64_t token : prompt) text += read->add(token);
    text += read->finish();
  }
  const bool alone = sequence.sampling.max_tokens == 0;
  sequence.tell(std::move(text), std::move(scores), alone ? std::optional(eval::Finish::length) : std::nullopt, 0);
}

bool Engine::take_token(Sequence& sequence, const at::Tensor& logits) {
  const std::vector<double> row = as_doubles(logits);
  const auto index = eval::draw_index(sequence.choice, sequence.made);
  sequence.last = eval::sample_token(row, sequence.sampling, index);
  ++sequence.made;
  std::string piece = sequence.text.add(sequence.last);
  std::vector<TokenScore> scores;
  // The token that ends a text has no text, but is one that was made.
  if (const auto wanted = sequence.request().logprobs) {
    scores.push_back(score_of(words_, row, sequence.last, *wanted));
  }
  const bool ended = sequence.text.done() || sequence.made == sequence.sampling.max_tokens;
  if (ended) piece += sequence.text.rest();
  const auto finish = ended ? std::optional(sequence.text.finish()) : std::nullopt;
  sequence.tell(std::move(piece), std::move(scores), finish, 1);
  return !ended;
}

void Engine::drop(size_t index) {
  batch_.leave(index);
  if (index + 1 < active_.size()) std::swap(active_[index], active_.back());
  active_.pop_back();
}

void Engine::step() {
  for (size_t i = active_.size(); i-- > 0;) {
    Sequence& sequence = active_[i];
    if (sequence.job->cancelled()) {
      drop(i);
    } else if (batch_.ended(i)) {
      sequence.tell(sequence.text.rest(), {}, sequence.text.finish(), 0);
      drop(i);
    }
  }
  if (active_.empty()) return;
  try {
    advance();
  } catch (const std::exception& error) {  // no memory: of what was to be made together, nothing was
    for (const Sequence& sequence : active_) sequence.job->fail(error.what());
    while (!active_.empty()) drop(active_.size() - 1);
  }
}

void Engine::advance() {
  std::vector<int64_t> tokens;
  for (const Sequence& sequence : active_) tokens.push_back(sequence.last);
  const at::Tensor logits = batch_.advance(tokens).to(at::kCPU);
  for (size_t i = active_.size(); i-- > 0;) {
    bool goes_on = false;
    try {
      goes_on = take_token(active_[i], logits[static_cast<int64_t>(i)]);
    } catch (const std::exception& error) {
      active_[i].job->fail(error.what());
    }
    if (!goes_on) drop(i);
  }
}

}  // namespace siamese::serve
