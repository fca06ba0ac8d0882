#include "siamese/serve/job.h"

namespace siamese::serve {

Job::Job(CompletionRequest request, std::vector<std::vector<int64_t>> prompts)
    : request_(std::move(request)), prompts_(std::move(prompts)) {}

int64_t Job::prompt_tokens() const {
  int64_t all = 0;
  for (const auto& prompt : prompts_) all += static_cast<int64_t>(prompt.size());
  return all;
}

void Job::tell(Piece piece, int64_t made_tokens) {
  const std::lock_guard lock(mutex_);
  made_tokens_ += made_tokens;
  if (cancelled_) return;
  pieces_.push_back(std::move(piece));
  changed_.notify_all();
}

void Job::fail(std::string why) {
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) failure_ = std::move(why);
  changed_.notify_all();
}

bool Job::cancelled() const {
  const std::lock_guard lock(mutex_);
  return cancelled_ || !failure_.empty();
}

std::optional<Piece> Job::next(Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, deadline,
                      [&] { return !pieces_.empty() || !failure_.empty() || cancelled_ || finished_ == choices(); });
  if (pieces_.empty() || !failure_.empty()) return std::nullopt;
  Piece piece = std::move(pieces_.front());
  pieces_.pop_front();
  if (piece.finish) ++finished_;
  return piece;
}

void Job::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  pieces_.clear();
  changed_.notify_all();
}

bool Job::finished() const {
  const std::lock_guard lock(mutex_);
  return finished_ == choices();
}

std::string Job::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

int64_t Job::made_tokens() const {
  const std::lock_guard lock(mutex_);
  return made_tokens_;
}

}  // namespace siamese::serve
