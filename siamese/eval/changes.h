// The loss of a model that is changed on its way down: sublayers left out, a stream zeroed or held from a place on, a
// channel of it levelled. Each change is a pass that begins at its first place, from the streams that one unchanged
// pass left there, so that what lies before is computed once.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "siamese/eval/given_batch.h"

namespace siamese::eval {

struct Change {
  enum class Kind { leave_out, zero, freeze, channel_mean, channel_zero };
  Kind kind = Kind::leave_out;
  size_t first = 0;         // the place it begins at
  size_t last = 0;          // leave_out: sites [first, last)
  std::string stream = "";  // zero, freeze: its name, from `first` to the close; channel_...: at `first` alone
  int64_t channel = 0;      // channel_mean: set to its mean over the tokens of the pass
};

// Every sublayer; every range of 1, 2, 4, 8 ... blocks, L log2 L of L blocks, or all L^2 / 2 ranges.
std::vector<Change> sublayers_left_out(int64_t blocks);
std::vector<Change> ranges_left_out(int64_t blocks, bool all = false);
// Where a block begins (or at every site), and at the close: each stream zeroed and held, where there are two streams
// or more. Of many (attn_res) the first four.
std::vector<Change> streams_cut(const models::Model& model, const GivenBatch& batch, bool all_sites = false);

class ChangedLosses {
 public:
  ChangedLosses(const models::Model& model, std::vector<Change> changes);

  // `step` is called after each pass.
  void add(const GivenBatch& batch, const std::function<void()>& step = {});

  const std::vector<Change>& changes() const { return changes_; }
  double unchanged() const { return sums_.back() / weight_; }
  double loss(size_t change) const { return sums_.at(change) / weight_; }

 private:
  const models::Model& model_;
  std::vector<Change> changes_;
  std::vector<double> sums_;  // of each, and of the unchanged pass
  double weight_ = 0;
};

}  // namespace siamese::eval
