// A group of processes that train one model: who we are in it, and how numbers are exchanged. MPI implements it
// (comm/mpi_group.cc, in a library of its own that is loaded only under mpirun and srun), tests by threads.
//
// Every call is made by all ranks, in the same order. A sum adds in the order of the ranks, whatever the network does:
// the same number of ranks gives the same bits, and every rank gets the same.
//
// One thread of a rank talks at a time. Another one than that which joined may, where has_threads() says so; whoever
// hands the group from one thread to another synchronises them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "siamese/base/check.h"

namespace siamese::comm {

// The others did not join an exchange within the timeout. What they do from here on is not known: only end_all helps.
class Unanswered : public SystemError {
 public:
  using SystemError::SystemError;
};

class Group {
 public:
  virtual ~Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::string& host() const { return host_; }
  bool leads() const { return rank_ == 0; }
  // "rank 1 on node07"
  std::string name() const;

  // The exchange of bytes, on which everything below stands. `send` and `all` hold size() parts of `bytes`.
  virtual void all_to_all(const std::byte* send, std::byte* receive, size_t bytes) = 0;  // part r goes to rank r
  virtual void all_gather(const std::byte* mine, std::byte* all, size_t bytes) = 0;      // part r came from rank r
  virtual void from_leader(std::byte* data, size_t bytes) = 0;                           // rank 0's data to all

  // An exchange that the others do not join for so long throws Unanswered; 0: it waits for ever.
  virtual void set_timeout(double seconds) = 0;
  virtual bool has_threads() const = 0;
  // How an exchange waits: by asking again and again, or, while another thread of this process needs the core, now and
  // then. May be called from any thread.
  virtual void set_patient(bool patient) = 0;
  // Ends the processes of all ranks, for a failure that the others cannot know of.
  [[noreturn]] virtual void end_all(int exit_code) = 0;

 protected:
  Group(int rank, int size, std::string host) : rank_(rank), size_(size), host_(std::move(host)) {}

 private:
  int rank_;
  int size_;
  std::string host_;
};

// values[i] becomes the sum of all ranks' values[i].
void sum(Group& group, std::span<float> values);
void sum(Group& group, std::span<double> values);
// The same where rank r owns values[borders[r]] to values[borders[r + 1]], and needs the sums of these alone: what
// other ranks own is left as it was.
void sum_own(Group& group, std::span<float> values, std::span<const int64_t> borders);
void sum_own(Group& group, std::span<double> values, std::span<const int64_t> borders);
// What every rank owns, to all; numbers of 16 bits by their bits.
void share_own(Group& group, std::span<float> values, std::span<const int64_t> borders);
void share_own(Group& group, std::span<double> values, std::span<const int64_t> borders);
void share_own(Group& group, std::span<uint16_t> values, std::span<const int64_t> borders);
// Every rank's text, in the order of the ranks.
std::vector<std::string> gather(Group& group, const std::string& text);
// Rank 0's text.
std::string from_leader(Group& group, const std::string& text);
// Rank 0's number.
int64_t from_leader(Group& group, int64_t number);

// The share of rank `rank` in `count` things: whole, consecutive, as even as they go.
struct Share {
  int64_t begin;
  int64_t end;
};
Share share_of(int64_t count, int rank, int size);

}  // namespace siamese::comm
