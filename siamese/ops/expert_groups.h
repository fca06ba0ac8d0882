// The rows of a mixture of experts sorted by expert (stable: by row, then by rank), and work cut into tasks that each
// run on one thread. Packed row i is input row source[i]; the r-th choice of row t lies at packed row place[t, r]; the
// rows of expert e are [first[e], first[e + 1]).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

namespace siamese::ops {

struct ExpertGroups {
  at::Tensor source;  // int64 [rows k]
  at::Tensor place;   // int64 [rows, k]
  at::Tensor first;   // int64 [E + 1]
};

// chosen: int64 [rows, k], dense.
ExpertGroups group_by_expert(const at::Tensor& chosen, int64_t experts);

// Packed rows [begin, begin + rows) of one expert.
struct ExpertBlock {
  int64_t expert;
  int64_t begin;
  int64_t rows;
};

// Every expert's rows in equal blocks of at most `most` rows.
std::vector<ExpertBlock> expert_blocks(const at::Tensor& first, int64_t most);

// body(task) for each task, whichever thread is free taking the next. A library called inside runs on one thread: its
// own threads would cut a product by their number, and change its last bits. (A loop of one turn would not be shared,
// and leave the library its threads: hence at least two.)
template <class Body>
void for_each_task(int64_t tasks, const Body& body) {
  std::atomic<int64_t> next{0};
  at::parallel_for(0, std::max(2, at::get_num_threads()), 1, [&](int64_t, int64_t) {
    const c10::NoGradGuard no_grad;  // of this thread
    for (int64_t task = next++; task < tasks; task = next++) body(task);
  });
}

}  // namespace siamese::ops
