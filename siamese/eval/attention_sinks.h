// Where attention goes, though nothing may be there: attention sinks (Xiao et al., arXiv 2309.17453). With a[h][i][j]
// the weight that token i gives to token j in head h, of all documents together:
//   first[h][p]  mean over the tokens i that see token p of their document of a[h][i][p]
//                (Gu et al., arXiv 2410.10781: the importance of position p; i = p counts)
//   largest[h]   the same for the token of each document that has the largest |x| of any stream there, a massive
//                activation (Sun et al., arXiv 2402.17762); of equals the first
// The weights are computed here, some rows at a time, from what attention compares: kernels never hold them.
#pragma once

#include <array>
#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/models/attention_watch.h"

namespace siamese::eval {

inline constexpr int64_t kFirstPositions = 4;
inline constexpr double kSinkShare = 0.3;  // from here on a head has a sink at the first position (Gu et al.)

class SinkSums {
 public:
  // sizes: [rows, tokens], the largest |x| of each token.
  void add(const models::WatchedAttention& watched, const at::Tensor& sizes);

  bool empty() const { return heads_.empty(); }
  int64_t heads() const { return static_cast<int64_t>(heads_.size()); }
  double first(int64_t head, int64_t position) const;  // NaN: no document is that long
  double largest(int64_t head) const;
  // Over the heads: their mean, and the share of those above kSinkShare.
  double mean_first() const;
  double mean_largest() const;
  double sink_rate() const;

 private:
  struct Head {
    std::array<double, kFirstPositions> first{};
    double largest = 0;
  };
  // The weights of tokens [begin, end) of a document on its tokens [0, seen), [heads, end - begin, seen].
  void add_rows(const at::Tensor& weights, int64_t begin, int64_t largest, const models::WatchedAttention& watched);

  std::vector<Head> heads_;
  std::array<double, kFirstPositions> seen_by_{};  // how many tokens see it
  double largest_seen_by_ = 0;
};

}  // namespace siamese::eval
