#include "siamese/eval/attention_sinks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "siamese/ops/one_thread.h"

namespace siamese::eval {

namespace attention_sinks_detail {

// What is held of the weights at once.
constexpr int64_t kMostWeights = int64_t{1} << 22;

// How many of the tokens [begin, end) see the token at `key`.
double seeing(int64_t begin, int64_t end, int64_t key, const models::WatchedAttention& watched) {
  if (watched.causal) begin = std::max(begin, key);
  if (watched.window > 0) end = std::min(end, key + watched.window);
  return static_cast<double>(std::max<int64_t>(0, end - begin));
}

// The softmax of rows [begin, end) over the tokens that each sees. q, k: [heads, tokens, head_dim].
at::Tensor weights_of(const at::Tensor& q, const at::Tensor& k, int64_t begin, int64_t end,
                      const models::WatchedAttention& watched) {
  const int64_t seen = watched.causal ? end : k.size(1);
  const at::Tensor scores = at::bmm(q.narrow(1, begin, end - begin), k.narrow(1, 0, seen).transpose(1, 2)) /
                            std::sqrt(static_cast<double>(q.size(2)));
  if (!watched.causal) return at::softmax(scores, -1);
  const at::Tensor apart = at::arange(begin, end, at::kLong).unsqueeze(1) - at::arange(seen, at::kLong);
  at::Tensor hidden = apart.lt(0);
  if (watched.window > 0) hidden = hidden.logical_or(apart.ge(watched.window));
  return at::softmax(scores.masked_fill(hidden, -std::numeric_limits<double>::infinity()), -1);
}

// [rows, tokens, heads, head_dim] -> [heads, all tokens, head_dim] on the host, each head of k for all that use it.
at::Tensor by_head(const at::Tensor& rows, int64_t heads) {
  const at::Tensor all = rows.to(at::kCPU, at::kFloat).flatten(0, 1).transpose(0, 1);
  return all.repeat_interleave(heads / all.size(0), 0).contiguous();
}

}  // namespace attention_sinks_detail

void SinkSums::add(const models::WatchedAttention& watched, const at::Tensor& sizes) {
  using namespace attention_sinks_detail;
  const c10::NoGradGuard no_grad;
  const ops::OneThread one_thread;  // products and sums in one order
  const int64_t heads = watched.heads.q.size(2);
  const at::Tensor q = by_head(watched.heads.q, heads), k = by_head(watched.heads.k, heads);
  const at::Tensor flat_sizes = sizes.to(at::kCPU).reshape({-1});
  heads_.resize(static_cast<size_t>(heads));
  std::vector<int64_t> documents = watched.pieces;
  if (documents.empty()) documents.assign(static_cast<size_t>(sizes.size(0)), sizes.size(1));
  int64_t before = 0;
  for (const int64_t tokens : documents) {
    const int64_t largest = flat_sizes.narrow(0, before, tokens).argmax().item<int64_t>();
    const at::Tensor own_q = q.narrow(1, before, tokens), own_k = k.narrow(1, before, tokens);
    const int64_t rows = std::clamp<int64_t>(kMostWeights / (heads * tokens), 1, tokens);
    for (int64_t begin = 0; begin < tokens; begin += rows) {
      const int64_t end = std::min(tokens, begin + rows);
      add_rows(weights_of(own_q, own_k, begin, end, watched), begin, largest, watched);
    }
    before += tokens;
  }
}

void SinkSums::add_rows(const at::Tensor& weights, int64_t begin, int64_t largest,
                        const models::WatchedAttention& watched) {
  const int64_t end = begin + weights.size(1), seen = weights.size(2);
  // What a token does not see has the weight 0.
  const auto add_to = [&](int64_t key, double& seen_by, const auto& sum_of) {
    if (key >= seen) return;
    seen_by += attention_sinks_detail::seeing(begin, end, key, watched);
    const at::Tensor sums = weights.select(2, key).to(at::kDouble).sum(1);
    for (size_t head = 0; head < heads_.size(); ++head) sum_of(heads_[head]) += sums.const_data_ptr<double>()[head];
  };
  for (size_t p = 0; p < static_cast<size_t>(kFirstPositions); ++p) {
    add_to(static_cast<int64_t>(p), seen_by_[p], [p](Head& head) -> double& { return head.first[p]; });
  }
  add_to(largest, largest_seen_by_, [](Head& head) -> double& { return head.largest; });
}

double SinkSums::first(int64_t head, int64_t position) const {
  const auto p = static_cast<size_t>(position);
  return heads_.at(static_cast<size_t>(head)).first.at(p) / seen_by_.at(p);  // 0 / 0: NaN
}

double SinkSums::largest(int64_t head) const { return heads_.at(static_cast<size_t>(head)).largest / largest_seen_by_; }

double SinkSums::mean_first() const {
  double sum = 0;
  for (int64_t head = 0; head < heads(); ++head) sum += first(head, 0);
  return sum / static_cast<double>(heads());
}

double SinkSums::mean_largest() const {
  double sum = 0;
  for (int64_t head = 0; head < heads(); ++head) sum += largest(head);
  return sum / static_cast<double>(heads());
}

double SinkSums::sink_rate() const {
  double sinks = 0;
  for (int64_t head = 0; head < heads(); ++head) sinks += first(head, 0) > kSinkShare ? 1 : 0;
  return sinks / static_cast<double>(heads());
}

}  // namespace siamese::eval
