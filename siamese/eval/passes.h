// The forward passes of an evaluation, each over some held-out samples, shared by the ranks that evaluate together: a
// rank makes every size()-th of them. What a pass gives is a row of numbers; at the end every rank has all rows, and
// adds them up in the order of the passes: the same bits as one process gets.
#pragma once

#include <cstdint>
#include <vector>

#include "siamese/comm/group.h"

namespace siamese::eval {

class Passes {
 public:
  // `group`: null when there is one process.
  explicit Passes(comm::Group* group) : group_(group) {}

  // Whether the next pass is this rank's; then its row has to be set.
  bool next_is_mine();
  void set(std::vector<double> row) { rows_.back() = std::move(row); }
  // Every rank calls it, once: the rows of all passes, all as long as the longest.
  std::vector<std::vector<double>> all();

 private:
  comm::Group* group_;
  std::vector<std::vector<double>> rows_;  // empty: another rank's
};

}  // namespace siamese::eval
