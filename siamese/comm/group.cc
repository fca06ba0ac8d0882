#include "siamese/comm/group.h"

#include <algorithm>
#include <cstring>

namespace siamese::comm {
namespace {

// Elements of a part that go over the wire at once: enough for the network's full rate, little beside a model.
constexpr size_t kPart = size_t{1} << 18;

// Each rank adds up one part of the values, which all others send to it; then all parts go to all ranks.
template <class T>
void sum_in_order(Group& group, std::span<T> values) {
  const auto ranks = static_cast<size_t>(group.size());
  if (ranks == 1) return;
  std::vector<T> received, padded, total;
  for (size_t from = 0; from < values.size();) {
    const size_t count = std::min(values.size() - from, ranks * kPart);
    const size_t part = (count + ranks - 1) / ranks;
    T* parts = values.data() + from;
    const bool fits = part * ranks == count;
    if (!fits) {
      padded.assign(part * ranks, T(0));
      std::copy_n(values.data() + from, count, padded.data());
      parts = padded.data();
    }
    received.resize(part * ranks);
    total.resize(part);
    group.all_to_all(reinterpret_cast<const std::byte*>(parts), reinterpret_cast<std::byte*>(received.data()),
                     part * sizeof(T));
    std::copy_n(received.data(), part, total.data());
    for (size_t rank = 1; rank < ranks; ++rank) {
      const T* const theirs = received.data() + rank * part;
      for (size_t i = 0; i < part; ++i) total[i] += theirs[i];
    }
    group.all_gather(reinterpret_cast<const std::byte*>(total.data()), reinterpret_cast<std::byte*>(parts),
                     part * sizeof(T));
    if (!fits) std::copy_n(padded.data(), count, values.data() + from);
    from += count;
  }
}

// The part of each rank in pieces of the same size, as they go over the wire together: `visit` gets what there is of it
// in this round (none, when a part is shorter than others), rank by rank.
struct Round {
  size_t length;  // of a piece; a shorter one is filled up
  size_t from;    // in each part
};
std::vector<Round> rounds_of(std::span<const int64_t> borders) {
  int64_t longest = 0;
  for (size_t i = 1; i < borders.size(); ++i) longest = std::max(longest, borders[i] - borders[i - 1]);
  std::vector<Round> rounds;
  for (size_t from = 0; from < static_cast<size_t>(longest); from += kPart) {
    rounds.push_back({std::min(kPart, static_cast<size_t>(longest) - from), from});
  }
  return rounds;
}

template <class T>
std::span<T> piece_of(std::span<T> values, std::span<const int64_t> borders, size_t rank, const Round& round) {
  const auto begin = static_cast<size_t>(borders[rank]), end = static_cast<size_t>(borders[rank + 1]);
  const size_t first = std::min(begin + round.from, end);
  return values.subspan(first, std::min(round.length, end - first));
}

template <class T>
void sum_own_in_order(Group& group, std::span<T> values, std::span<const int64_t> borders) {
  const auto ranks = static_cast<size_t>(group.size()), me = static_cast<size_t>(group.rank());
  if (ranks == 1) return;
  std::vector<T> sent, received;
  for (const Round& round : rounds_of(borders)) {
    sent.resize(ranks * round.length);
    received.resize(ranks * round.length);
    for (size_t rank = 0; rank < ranks; ++rank) {
      std::ranges::copy(piece_of(values, borders, rank, round), sent.data() + rank * round.length);
    }
    group.all_to_all(reinterpret_cast<const std::byte*>(sent.data()), reinterpret_cast<std::byte*>(received.data()),
                     round.length * sizeof(T));
    const std::span<T> mine = piece_of(values, borders, me, round);
    std::copy_n(received.data(), mine.size(), mine.data());
    for (size_t rank = 1; rank < ranks; ++rank) {
      const T* const theirs = received.data() + rank * round.length;
      for (size_t i = 0; i < mine.size(); ++i) mine[i] += theirs[i];
    }
  }
}

template <class T>
void share_own_with_all(Group& group, std::span<T> values, std::span<const int64_t> borders) {
  const auto ranks = static_cast<size_t>(group.size()), me = static_cast<size_t>(group.rank());
  if (ranks == 1) return;
  std::vector<T> sent, received;
  for (const Round& round : rounds_of(borders)) {
    sent.resize(round.length);
    received.resize(ranks * round.length);
    std::ranges::copy(piece_of(values, borders, me, round), sent.data());
    group.all_gather(reinterpret_cast<const std::byte*>(sent.data()), reinterpret_cast<std::byte*>(received.data()),
                     round.length * sizeof(T));
    for (size_t rank = 0; rank < ranks; ++rank) {
      const std::span<T> theirs = piece_of(values, borders, rank, round);
      std::copy_n(received.data() + rank * round.length, theirs.size(), theirs.data());
    }
  }
}

}  // namespace

std::string Group::name() const { return "rank " + std::to_string(rank_) + " on " + host_; }

void sum(Group& group, std::span<float> values) { sum_in_order(group, values); }
void sum(Group& group, std::span<double> values) { sum_in_order(group, values); }

void sum_own(Group& group, std::span<float> values, std::span<const int64_t> borders) {
  sum_own_in_order(group, values, borders);
}
void sum_own(Group& group, std::span<double> values, std::span<const int64_t> borders) {
  sum_own_in_order(group, values, borders);
}
void share_own(Group& group, std::span<float> values, std::span<const int64_t> borders) {
  share_own_with_all(group, values, borders);
}
void share_own(Group& group, std::span<double> values, std::span<const int64_t> borders) {
  share_own_with_all(group, values, borders);
}
void share_own(Group& group, std::span<uint16_t> values, std::span<const int64_t> borders) {
  share_own_with_all(group, values, borders);
}

std::vector<std::string> gather(Group& group, const std::string& text) {
  const auto ranks = static_cast<size_t>(group.size());
  std::vector<uint64_t> lengths(ranks);
  const uint64_t length = text.size();
  group.all_gather(reinterpret_cast<const std::byte*>(&length), reinterpret_cast<std::byte*>(lengths.data()),
                   sizeof length);
  const uint64_t longest = *std::max_element(lengths.begin(), lengths.end());
  std::string mine = text;
  mine.resize(longest);
  std::string all(ranks * longest, '\0');
  if (longest > 0) {
    group.all_gather(reinterpret_cast<const std::byte*>(mine.data()), reinterpret_cast<std::byte*>(all.data()),
                     longest);
  }
  std::vector<std::string> texts;
  for (size_t rank = 0; rank < ranks; ++rank) texts.push_back(all.substr(rank * longest, lengths[rank]));
  return texts;
}

std::string from_leader(Group& group, const std::string& text) {
  std::string result = text;
  result.resize(static_cast<size_t>(from_leader(group, static_cast<int64_t>(text.size()))));
  if (!result.empty()) group.from_leader(reinterpret_cast<std::byte*>(result.data()), result.size());
  return result;
}

int64_t from_leader(Group& group, int64_t number) {
  group.from_leader(reinterpret_cast<std::byte*>(&number), sizeof number);
  return number;
}

Share share_of(int64_t count, int rank, int size) { return {count * rank / size, count * (rank + 1) / size}; }

}  // namespace siamese::comm
