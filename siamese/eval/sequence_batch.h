// Sequences that are continued together and come and go: a step reads the weights once for all of them. What one gets
// does not depend on the others, to the bit: prompts are read one by one, and a step of at most kMost rows multiplies
// each as if it were alone (generate.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/models/lm.h"

namespace siamese::eval {

class SequenceBatch {
 public:
  static constexpr size_t kMost = 8;

  // The model must outlive it.
  explicit SequenceBatch(const models::LanguageModel& model);

  size_t size() const { return size_; }
  bool full() const { return size_ == kMost; }

  // Reads a prompt (check_prompt), which becomes the last sequence: the states after each of its tokens, [tokens,
  // width].
  at::Tensor join(const std::vector<int64_t>& prompt);
  // One token more of each, in order: logits [size, vocab].
  at::Tensor advance(const std::vector<int64_t>& tokens);
  // The last sequence takes its place.
  void leave(size_t index);
  // Whether the model knows no position for a further token of it.
  bool ended(size_t index) const;

 private:
  models::LmCache first(size_t count) const;  // in the same memory

  const models::LanguageModel& model_;
  models::LmCache cache_;
  size_t size_ = 0;
};

}  // namespace siamese::eval
