#include <algorithm>
#include <queue>
#include <tuple>

#include "siamese/text/bpe.h"

namespace siamese::text {

void merge_short(const MergeTable& merges, std::vector<TokenId>& symbols) {
  thread_local std::vector<Merge> pairs;  // of symbol i and the next
  size_t count = symbols.size();
  if (count < 2) return;
  pairs.resize(count);
  for (size_t i = 0; i + 1 < count; ++i) pairs[i] = merges.find(symbols[i], symbols[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (pairs[i].rank < pairs[best].rank) best = i;
    }
    if (pairs[best].rank == Merge::kNever) break;
    symbols[best] = pairs[best].id;
    const auto after = static_cast<std::ptrdiff_t>(best);
    const auto end = static_cast<std::ptrdiff_t>(count);
    std::copy(symbols.begin() + after + 2, symbols.begin() + end, symbols.begin() + after + 1);
    if (best + 2 < count) std::copy(pairs.begin() + after + 2, pairs.begin() + end, pairs.begin() + after + 1);
    --count;
    if (best > 0) pairs[best - 1] = merges.find(symbols[best - 1], symbols[best]);
    if (best + 1 < count) pairs[best] = merges.find(symbols[best], symbols[best + 1]);
  }
  symbols.resize(count);
}

void merge_long(const MergeTable& merges, std::vector<TokenId>& symbols) {
  if (symbols.size() < 2) return;
  // A list in an array: a symbol that was merged into the one before it has the id kGone.
  constexpr TokenId kGone = UINT32_MAX;
  const auto count = static_cast<uint32_t>(symbols.size());
  std::vector<uint32_t> next(count);
  std::vector<uint32_t> before(count);
  struct Candidate {
    uint32_t rank;
    uint32_t at;
    uint32_t id;
    bool operator>(const Candidate& other) const { return std::tie(rank, at) > std::tie(other.rank, other.at); }
  };
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto consider = [&](uint32_t at) {
    if (next[at] >= count) return;
    const Merge merge = merges.find(symbols[at], symbols[next[at]]);
    if (merge.rank != Merge::kNever) queue.push({merge.rank, at, merge.id});
  };
  for (uint32_t i = 0; i < count; ++i) {
    next[i] = i + 1;
    before[i] = i - 1;
  }
  for (uint32_t i = 0; i < count; ++i) consider(i);
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    const uint32_t right = next[top.at];
    if (symbols[top.at] == kGone || right >= count) continue;
    const Merge now = merges.find(symbols[top.at], symbols[right]);
    if (now.rank != top.rank) continue;  // a neighbour has changed since
    symbols[top.at] = top.id;
    symbols[right] = kGone;
    next[top.at] = next[right];
    if (next[right] < count) before[next[right]] = top.at;
    consider(top.at);
    if (top.at > 0) consider(before[top.at]);
  }
  std::erase(symbols, kGone);
}

}  // namespace siamese::text
