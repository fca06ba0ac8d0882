// Completes what is asked, all of it together: one thread has the model, every step makes a token of each sequence that
// goes on, and new ones join between two steps. What a sequence gets does not depend on what else is asked
// (eval/sequence_batch.h), and is what `siamese generate` makes of the same prompts, n, seed and sampling.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "siamese/eval/sequence_batch.h"
#include "siamese/eval/words.h"
#include "siamese/serve/job.h"

namespace siamese::serve {

inline constexpr const char* kShuttingDown = "the server is shutting down";

class Engine {
 public:
  // Both must outlive it. `queue`: sequences that may wait.
  Engine(const models::LanguageModel& model, const eval::Words& words, size_t queue);
  ~Engine();

  const eval::Words& words() const { return words_; }
  const models::ModelConfig& model() const { return model_.config(); }

  // From any thread. False when more would wait than may, or it is closed.
  bool submit(std::shared_ptr<Job> job);
  // What waits and goes on is failed with a word about the end, and nothing new is taken.
  void close();

  bool closed() const;
  size_t waiting() const;
  size_t running() const { return running_; }

  // On the thread that has the model, until it is closed. `stop` is asked now and then; true closes it.
  void run(const std::function<bool()>& stop);

 private:
  struct Sequence;

  // Those that wait, as far as there is room. Blocks a moment when there is nothing to do.
  void admit(bool idle);
  void begin(Sequence sequence);
  void step();
  void advance();
  bool take_token(Sequence& sequence, const at::Tensor& logits);  // false: it ended
  void score_prompt(Sequence& sequence, const at::Tensor& states);
  void drop(size_t index);

  const models::LanguageModel& model_;
  const eval::Words& words_;
  const size_t queue_;
  eval::SequenceBatch batch_;
  std::vector<Sequence> active_;  // in the order of the batch

  mutable std::mutex mutex_;
  std::condition_variable asked_;
  std::list<Sequence> waiting_;
  bool closed_ = false;
  std::atomic<size_t> running_ = 0;
};

}  // namespace siamese::serve
