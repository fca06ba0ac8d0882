#include "siamese/eval/likelihood.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include "siamese/base/check.h"
#include "siamese/ops/operand.h"
#include "siamese/ops/reduce.h"

namespace siamese::eval {
namespace {

using Tokens = std::span<const int64_t>;

constexpr int64_t kTokens = 4096;              // of the sequences that are computed together
constexpr int64_t kLogits = int64_t{1} << 24;  // held at once

int64_t length(Tokens tokens) { return static_cast<int64_t>(tokens.size()); }

Tokens read_of(const Query& query) { return Tokens(query.tokens).first(query.tokens.size() - 1); }

// How many tokens of each query of a group can be computed once: those that are alike and give no score.
int64_t beginning_of(const QueryGroup& group) {
  const Tokens first = read_of(group.front());
  int64_t alike = length(first);
  for (const Query& query : group) {
    const Tokens read = read_of(query);
    const auto parted = std::mismatch(first.begin(), first.begin() + std::min(alike, length(read)), read.begin());
    alike = std::min<int64_t>(parted.first - first.begin(), length(read) - query.scored);
  }
  return alike;
}

bool begins_with(const QueryGroup& group, Tokens beginning) {
  const Tokens read = read_of(group.front());
  return beginning_of(group) >= length(beginning) && std::equal(beginning.begin(), beginning.end(), read.begin());
}

// What all groups begin with; those that were cut from the left have lost it and are not asked.
Tokens common_beginning(const std::vector<QueryGroup>& groups, int64_t context) {
  const auto is_cut = [&](const QueryGroup& group) {
    return std::any_of(group.begin(), group.end(), [&](const Query& query) { return length(query.tokens) > context; });
  };
  std::optional<Tokens> common;
  for (const QueryGroup& group : groups) {
    if (is_cut(group)) continue;
    const Tokens read = read_of(group.front()).first(static_cast<size_t>(beginning_of(group)));
    if (!common) common = read;
    const auto shorter = common->first(std::min(common->size(), read.size()));
    common = shorter.first(
        static_cast<size_t>(std::mismatch(shorter.begin(), shorter.end(), read.begin()).first - shorter.begin()));
  }
  return common.value_or(Tokens());
}

int64_t longest_rest(const QueryGroup& group, int64_t beginning) {
  int64_t longest = 0;
  for (const Query& query : group) longest = std::max(longest, length(read_of(query)) - beginning);
  return longest;
}

// [rows, longest]; what is behind the end of a row is read by nobody: the model is causal.
at::Tensor padded(const std::vector<Tokens>& rows) {
  int64_t longest = 0;
  for (const Tokens row : rows) longest = std::max(longest, length(row));
  const at::Tensor tokens = at::zeros({static_cast<int64_t>(rows.size()), longest}, at::kLong);
  int64_t* out = tokens.mutable_data_ptr<int64_t>();
  for (const Tokens row : rows) {
    std::copy(row.begin(), row.end(), out);
    out += longest;
  }
  return tokens;
}

// Sequences that go on from those of a cache, each from the one named.
models::LmCache continued(const models::LanguageModel& model, const models::LmCache& from,
                          const std::vector<size_t>& which, int64_t capacity) {
  models::LmCache cache = model.make_cache(static_cast<int64_t>(which.size()), capacity);
  for (size_t row = 0; row < which.size(); ++row) {
    const int64_t past = from.past[which[row]];
    cache.past[row] = past;
    for (size_t layer = 0; layer < cache.layers.size(); ++layer) {
      const auto copy = [&](const at::Tensor& to, const at::Tensor& of) {
        to.select(0, static_cast<int64_t>(row))
            .narrow(1, 0, past)
            .copy_(of.select(0, static_cast<int64_t>(which[row])).narrow(1, 0, past));
      };
      copy(cache.layers[layer].keys, from.layers[layer].keys);
      copy(cache.layers[layer].values, from.layers[layer].values);
    }
  }
  return cache;
}

// Queries of several groups, whose beginnings are read: the row of the cache that each goes on from.
struct Rests {
  std::vector<const Query*> queries;
  std::vector<size_t> rows;
  int64_t capacity = 0;
};

// Where targets are predicted, among the rows of `hidden` laid one after the other.
struct Targets {
  std::vector<int64_t> places, tokens;
};

Targets targets_of(const Rests& rests, const std::vector<Tokens>& read, int64_t longest) {
  Targets targets;
  for (size_t row = 0; row < read.size(); ++row) {
    const Query& query = *rests.queries[row];
    const int64_t first = length(read[row]) - query.scored;
    for (int64_t i = 0; i < query.scored; ++i) {
      targets.places.push_back(static_cast<int64_t>(row) * longest + first + i);
      targets.tokens.push_back(query.tokens[query.tokens.size() - static_cast<size_t>(query.scored - i)]);
    }
  }
  return targets;
}

std::vector<double> log_probabilities(const models::LanguageModel& model, const at::Tensor& hidden,
                                      const Targets& targets) {
  const at::Tensor rows = hidden.reshape({-1, hidden.size(2)});
  const auto count = static_cast<int64_t>(targets.places.size());
  const int64_t step = std::max<int64_t>(1, kLogits / model.config().vocab);
  std::vector<double> result;
  for (int64_t first = 0; first < count; first += step) {
    const int64_t some = std::min(step, count - first);
    const auto part = [&](const std::vector<int64_t>& all) {
      return at::tensor(at::IntArrayRef(all).slice(static_cast<size_t>(first), static_cast<size_t>(some)), at::kLong)
          .to(hidden.device());
    };
    const at::Tensor logits = model.logits(rows.index_select(0, part(targets.places)));
    const at::Tensor of_target = logits.gather(1, part(targets.tokens).unsqueeze(1)).squeeze(1);
    const at::Tensor logs = (of_target - ops::log_sum_exp(logits)).to(at::kCPU, at::kDouble).contiguous();
    result.insert(result.end(), logs.const_data_ptr<double>(), logs.const_data_ptr<double>() + some);
  }
  return result;
}

std::vector<double> score_rests(const models::LanguageModel& model, const models::LmCache& beginnings,
                                const Rests& rests) {
  models::LmCache cache = continued(model, beginnings, rests.rows, rests.capacity);
  std::vector<Tokens> read;
  for (size_t i = 0; i < rests.queries.size(); ++i) {
    read.push_back(read_of(*rests.queries[i]).subspan(static_cast<size_t>(cache.past[i])));
  }
  const at::Tensor hidden = model.hidden(padded(read), {}, &cache);
  const std::vector<double> logs = log_probabilities(model, hidden, targets_of(rests, read, hidden.size(1)));
  std::vector<double> sums;
  auto at = logs.begin();
  for (const Query* const query : rests.queries) {
    sums.push_back(std::accumulate(at, at + query->scored, 0.0));
    at += query->scored;
    if (!std::isfinite(sums.back())) throw DataError("eval: the model gives log-likelihoods that are not finite");
  }
  return sums;
}

}  // namespace

std::optional<Query> make_query(Tokens context, Tokens continuation, int64_t longest) {
  if (context.empty() || continuation.empty() || length(continuation) > longest) return std::nullopt;
  Query query;
  query.tokens.assign(context.begin(), context.end());
  query.tokens.insert(query.tokens.end(), continuation.begin(), continuation.end());
  const int64_t over = length(query.tokens) - (longest + 1);
  if (over > 0) query.tokens.erase(query.tokens.begin(), query.tokens.begin() + over);
  query.scored = length(continuation);
  return query;
}

std::vector<std::vector<size_t>> batches_of(const std::vector<QueryGroup>& groups, int64_t context) {
  std::vector<std::tuple<int64_t, int64_t, size_t>> order;  // beginning, rest, index
  for (size_t i = 0; i < groups.size(); ++i) {
    const int64_t beginning = beginning_of(groups[i]);
    order.emplace_back(beginning, longest_rest(groups[i], beginning), i);
  }
  std::sort(order.begin(), order.end());
  std::vector<std::vector<size_t>> batches;
  int64_t rest = 0, rows = 0;
  for (const auto& [beginning, own_rest, index] : order) {
    const auto own_rows = static_cast<int64_t>(groups[index].size());
    rest = std::max(rest, own_rest);
    rows += own_rows;
    // The longest beginning with the longest rest has to fit, although nobody has both.
    const int64_t width = beginning + rest;
    if (batches.empty() || width > context || width * rows > kTokens) {
      batches.emplace_back();
      rest = own_rest;
      rows = own_rows;
    }
    batches.back().push_back(index);
  }
  return batches;
}

LikelihoodScorer::LikelihoodScorer(const models::LanguageModel& model, const std::vector<QueryGroup>& groups)
    : model_(model), groups_(groups), common_(common_beginning(groups, model.config().context)) {
  const c10::InferenceMode inference;
  const ops::RoundWeightsOnce rounded;
  cache_ = model.make_cache(1, std::max<int64_t>(1, length(common_)));
  if (!common_.empty()) model.hidden(padded({common_}), {}, &cache_);
}

models::LmCache LikelihoodScorer::read_beginnings(const std::vector<size_t>& indices) const {
  const bool common =
      std::all_of(indices.begin(), indices.end(), [&](size_t index) { return begins_with(groups_[index], common_); });
  models::LmCache none;
  if (!common) none = model_.make_cache(1, 1);
  const models::LmCache& from = common ? cache_ : none;
  const int64_t known = from.past.front();
  std::vector<Tokens> read;
  std::vector<int64_t> lengths;
  for (const size_t index : indices) {
    lengths.push_back(beginning_of(groups_[index]));
    read.push_back(read_of(groups_[index].front())
                       .subspan(static_cast<size_t>(known), static_cast<size_t>(lengths.back() - known)));
  }
  const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  models::LmCache cache =
      continued(model_, from, std::vector<size_t>(indices.size(), 0), std::max<int64_t>(1, longest));
  if (longest > known) model_.hidden(padded(read), {}, &cache);
  cache.past = lengths;
  return cache;
}

std::vector<std::vector<double>> LikelihoodScorer::score(const std::vector<size_t>& indices) const {
  const c10::InferenceMode inference;
  const ops::RoundWeightsOnce rounded;
  const models::LmCache beginnings = read_beginnings(indices);
  const int64_t farthest = *std::max_element(beginnings.past.begin(), beginnings.past.end());
  std::vector<double> scores;
  Rests rests;
  int64_t longest = 0;
  const auto finish = [&] {
    if (rests.queries.empty()) return;
    const std::vector<double> some = score_rests(model_, beginnings, rests);
    scores.insert(scores.end(), some.begin(), some.end());
    rests = {};
    longest = 0;
  };
  for (size_t row = 0; row < indices.size(); ++row) {
    const int64_t beginning = beginnings.past[row];
    for (const Query& query : groups_[indices[row]]) {
      const int64_t rest = length(read_of(query)) - beginning;
      const int64_t capacity = farthest + std::max(longest, rest);
      if (capacity * static_cast<int64_t>(rests.queries.size() + 1) > kTokens && !rests.queries.empty()) finish();
      longest = std::max(longest, rest);
      rests.queries.push_back(&query);
      rests.rows.push_back(row);
      rests.capacity = farthest + longest;
    }
  }
  finish();
  std::vector<std::vector<double>> result;
  auto at = scores.begin();
  for (const size_t index : indices) {
    result.emplace_back(at, at + static_cast<std::ptrdiff_t>(groups_[index].size()));
    at += static_cast<std::ptrdiff_t>(groups_[index].size());
  }
  return result;
}

}  // namespace siamese::eval
