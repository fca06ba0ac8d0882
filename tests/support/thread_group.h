// A group whose ranks are threads of one process: the exchange by memory, for tests of what stands on it.
#pragma once

#include <barrier>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "siamese/comm/group.h"

namespace siamese::comm {

class ThreadGroup : public Group {
 public:
  // Runs `work` on so many ranks at once and waits for all of them.
  static void run(int size, const std::function<void(Group&)>& work) {
    Board board(size);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        ThreadGroup group(rank, size, board);
        work(group);
      });
    }
    for (auto& thread : threads) thread.join();
  }

  void all_to_all(const std::byte* send, std::byte* receive, size_t bytes) override {
    show(send);
    const auto mine = static_cast<size_t>(rank());
    for (size_t from = 0; from < board_.shown.size(); ++from) {
      std::memcpy(receive + from * bytes, board_.shown[from] + mine * bytes, bytes);
    }
    board_.all.arrive_and_wait();
  }
  void all_gather(const std::byte* mine, std::byte* all, size_t bytes) override {
    show(mine);
    for (size_t from = 0; from < board_.shown.size(); ++from)
      std::memcpy(all + from * bytes, board_.shown[from], bytes);
    board_.all.arrive_and_wait();
  }
  void from_leader(std::byte* data, size_t bytes) override {
    show(data);
    if (rank() != 0) std::memcpy(data, board_.shown[0], bytes);
    board_.all.arrive_and_wait();
  }
  void set_timeout(double) override {}
  bool has_threads() const override { return true; }
  [[noreturn]] void end_all(int) override { throw std::runtime_error("end_all"); }

 private:
  struct Board {
    explicit Board(int size) : all(size), shown(static_cast<size_t>(size)) {}
    std::barrier<> all;
    std::vector<const std::byte*> shown;
  };

  ThreadGroup(int rank, int size, Board& board) : Group(rank, size, "here"), board_(board) {}
  void show(const std::byte* data) {
    board_.shown[static_cast<size_t>(rank())] = data;
    board_.all.arrive_and_wait();
  }

  Board& board_;
};

}  // namespace siamese::comm
