#include "siamese/comm/group.h"

#include <mutex>

#include "tests/support/thread_group.h"
#include <gtest/gtest.h>

namespace siamese::comm {
namespace {

// Numbers whose sum in float depends on the order of its terms.
float value_of(int rank, size_t i) {
  const float sizes[] = {1e8F, 1.0F, -1e8F, 3.0F, 1e-3F};
  return sizes[(static_cast<size_t>(rank) + i) % 5] * (1.0F + static_cast<float>(i % 7));
}

template <class T>
void expect_sum_in_order(int ranks, size_t count) {
  SCOPED_TRACE(std::to_string(ranks) + " ranks, " + std::to_string(count) + " values");
  std::vector<T> expected(count);
  for (size_t i = 0; i < count; ++i) {
    expected[i] = static_cast<T>(value_of(0, i));
    for (int rank = 1; rank < ranks; ++rank) expected[i] += static_cast<T>(value_of(rank, i));
  }
  std::vector<std::vector<T>> got(static_cast<size_t>(ranks));
  ThreadGroup::run(ranks, [&](Group& group) {
    std::vector<T>& values = got[static_cast<size_t>(group.rank())];
    for (size_t i = 0; i < count; ++i) values.push_back(static_cast<T>(value_of(group.rank(), i)));
    sum(group, std::span<T>(values));
  });
  for (const auto& values : got) EXPECT_EQ(values, expected);
}

TEST(Group, SumsInTheOrderOfTheRanks) {
  for (const int ranks : {1, 2, 3, 4, 7}) {
    for (const size_t count : {size_t{1}, size_t{2}, size_t{5}, size_t{31}, size_t{1000}}) {
      expect_sum_in_order<float>(ranks, count);
      expect_sum_in_order<double>(ranks, count);
    }
  }
}

// More than goes over the wire at once, and a rest that is no multiple of the ranks.
TEST(Group, SumsWhatDoesNotGoAtOnce) {
  expect_sum_in_order<float>(2, (size_t{1} << 20) + 1);
  expect_sum_in_order<float>(3, (size_t{1} << 20));
}

// Parts of different sizes, one of them empty, one longer than what goes over the wire at once.
TEST(Group, SumsAndSharesWhatEachRankOwns) {
  const std::vector<std::vector<int64_t>> all_borders = {
      {0, 5, 5, 31}, {0, 1, 2, 3}, {0, 0, 0, 0}, {0, 7, (int64_t{1} << 18) + 9, (int64_t{1} << 18) + 10}};
  for (const auto& borders : all_borders) {
    SCOPED_TRACE(borders.back());
    const auto count = static_cast<size_t>(borders.back());
    std::vector<std::vector<float>> own(3), shared(3);
    ThreadGroup::run(3, [&](Group& group) {
      std::vector<float> values(count);
      for (size_t i = 0; i < count; ++i) values[i] = value_of(group.rank(), i);
      sum_own(group, std::span<float>(values), borders);
      own[static_cast<size_t>(group.rank())] = values;
      share_own(group, std::span<float>(values), borders);
      shared[static_cast<size_t>(group.rank())] = values;
    });
    for (size_t i = 0; i < count; ++i) {
      const float sum = value_of(0, i) + value_of(1, i) + value_of(2, i);
      for (size_t rank = 0; rank < 3; ++rank) {
        const bool owned = borders[rank] <= static_cast<int64_t>(i) && static_cast<int64_t>(i) < borders[rank + 1];
        ASSERT_EQ(own[rank][i], owned ? sum : value_of(static_cast<int>(rank), i)) << rank << " " << i;
        ASSERT_EQ(shared[rank][i], sum) << rank << " " << i;
      }
    }
  }
}

TEST(Group, SharesSixteenBitsAsTheyAre) {
  const std::vector<int64_t> borders = {0, 3, 3, 70000};
  std::vector<std::vector<uint16_t>> shared(3);
  ThreadGroup::run(3, [&](Group& group) {
    const auto rank = static_cast<size_t>(group.rank());
    std::vector<uint16_t> values(70000);
    for (auto i = static_cast<size_t>(borders[rank]); i < static_cast<size_t>(borders[rank + 1]); ++i) {
      values[i] = static_cast<uint16_t>(i * 31 + rank);
    }
    share_own(group, std::span<uint16_t>(values), borders);
    shared[rank] = values;
  });
  for (size_t i = 0; i < shared[0].size(); ++i) {
    for (size_t rank = 0; rank < 3; ++rank) ASSERT_EQ(shared[rank][i], static_cast<uint16_t>(i * 31 + (i < 3 ? 0 : 2)));
  }
}

TEST(Group, NothingToSum) {
  ThreadGroup::run(2, [](Group& group) { sum(group, std::span<float>()); });
}

TEST(Group, GathersTextsOfAnyLength) {
  const std::vector<std::string> texts = {"", std::string("a\0b", 3), "longer than the others"};
  std::mutex mutex;
  ThreadGroup::run(3, [&](Group& group) {
    const auto got = gather(group, texts[static_cast<size_t>(group.rank())]);
    const auto none = gather(group, "");
    const std::scoped_lock lock(mutex);
    EXPECT_EQ(got, texts);
    EXPECT_EQ(none, std::vector<std::string>(3));
  });
}

TEST(Group, WordsOfTheLeader) {
  std::mutex mutex;
  ThreadGroup::run(3, [&](Group& group) {
    const std::string text = from_leader(group, group.leads() ? "the config" : "mine, which is not asked for");
    const std::string nothing = from_leader(group, group.leads() ? "" : "mine");
    const int64_t number = from_leader(group, int64_t{group.rank() + 42});
    const std::scoped_lock lock(mutex);
    EXPECT_EQ(text, "the config");
    EXPECT_EQ(nothing, "");
    EXPECT_EQ(number, 42);
  });
}

TEST(Group, SharesAreWholeConsecutiveAndEven) {
  for (const int size : {1, 2, 3, 5}) {
    for (const int64_t count : {5, 6, 7, 64}) {
      int64_t next = 0;
      for (int rank = 0; rank < size; ++rank) {
        const Share share = share_of(count, rank, size);
        EXPECT_EQ(share.begin, next);
        EXPECT_GE(share.end - share.begin, count / size);
        EXPECT_LE(share.end - share.begin, count / size + 1);
        next = share.end;
      }
      EXPECT_EQ(next, count);
    }
  }
}

}  // namespace
}  // namespace siamese::comm
