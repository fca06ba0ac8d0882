#include "siamese/ops/attention_threads.h"

#include <algorithm>
#include <atomic>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

namespace siamese::ops {
namespace attention_threads {

using kernels::AttentionPiece;
using kernels::AttentionShape;
using kernels::AttentionSizes;
using kernels::AttentionStep;

// The tasks [0, whole) on all threads; body(scratch, begin, end).
template <class Body>
void for_whole_tasks(int64_t whole, const AttentionSizes& sizes, const Body& body) {
  at::parallel_for(0, whole, 1, [&](int64_t begin, int64_t end) {
    const at::Tensor scratch = at::empty({sizes.task_floats + sizes.block_floats}, at::kFloat);
    body(scratch.mutable_data_ptr<float>(), begin, end);
  });
}

// body(i, scratch) for i in [0, count), whichever thread is free taking the next.
template <class Body>
void for_each_piece(int64_t count, int64_t scratch_floats, const Body& body) {
  std::atomic<int64_t> next{0};
  at::parallel_for(0, std::min<int64_t>(count, at::get_num_threads()), 1, [&](int64_t, int64_t) {
    const at::Tensor scratch = at::empty({scratch_floats}, at::kFloat);
    for (int64_t i = next++; i < count; i = next++) body(i, scratch.mutable_data_ptr<float>());
  });
}

// The tasks that all threads share, from `first` on, and how their pieces are counted: by task, head, block.
class SharedTasks {
 public:
  SharedTasks(const AttentionShape& shape, const AttentionSizes& sizes)
      : sizes_(sizes), heads_(shape.heads / shape.kv_heads), tasks_(shape.tasks() % at::get_num_threads()) {
    constexpr int64_t kWorthAThread = int64_t{1} << 22;  // multiply-adds of a task
    const bool small = shape.tokens * shape.tokens * shape.head_dim * heads_ < kWorthAThread;
    if (small || blocks() < 2 || at::in_parallel_region()) tasks_ = 0;
    first_ = shape.tasks() - tasks_;
    of_tasks_ = at::empty({tasks_ * sizes.task_floats}, at::kFloat);
  }

  int64_t first() const { return first_; }
  int64_t tasks() const { return tasks_; }
  int64_t blocks() const { return heads_ * sizes_.blocks; }  // of a task
  AttentionPiece piece(AttentionStep step, int64_t task, int64_t head, int64_t block) const {
    return {step, first_ + task, head, block, 0, of_tasks_.mutable_data_ptr<float>() + task * sizes_.task_floats};
  }
  AttentionPiece block_piece(AttentionStep step, int64_t index, float* of_block) const {
    AttentionPiece made = piece(step, index / blocks(), index % blocks() / sizes_.blocks, index % sizes_.blocks);
    made.of_block = of_block;
    return made;
  }
  // A step that has a piece for each block of tokens.
  template <class Run>
  void for_each_token_block(AttentionStep step, const Run& run) const {
    for_each_piece(tasks_ * sizes_.blocks, 0,
                   [&](int64_t i, float*) { run(piece(step, i / sizes_.blocks, 0, i % sizes_.blocks)); });
  }

 private:
  AttentionSizes sizes_;
  int64_t heads_;  // of a task
  int64_t tasks_;
  int64_t first_ = 0;
  at::Tensor of_tasks_;
};

// Backward of the shared tasks. The p and ds of some blocks are kept until the sums over them are made, whose order is
// that of the blocks however many are kept.
template <class Run>
void shared_backward(const SharedTasks& shared, const AttentionSizes& sizes, const Run& run) {
  constexpr int64_t kKeptFloats = int64_t{1} << 23;     // 32 MiB, or
  constexpr int64_t kLargestFloats = int64_t{1} << 26;  // 256 MiB for four blocks a thread; one they have at any size
  const int64_t all = shared.tasks() * shared.blocks();
  const int64_t threads = at::get_num_threads();
  const int64_t four_each = std::min(4 * threads, kLargestFloats / sizes.block_floats);
  const int64_t kept = std::min(all, std::max({kKeptFloats / sizes.block_floats, four_each, threads}));
  const at::Tensor of_blocks = at::empty({kept, sizes.block_floats}, at::kFloat);
  const auto of_block = [&](int64_t i) { return of_blocks.mutable_data_ptr<float>() + i * sizes.block_floats; };
  shared.for_each_token_block(AttentionStep::keys, run);
  for (int64_t begin = 0; begin < all; begin += kept) {
    const int64_t end = std::min(all, begin + kept);
    // From the last: with causality those are the longest.
    for_each_piece(end - begin, 0, [&](int64_t i, float*) {
      const int64_t index = end - 1 - i;
      run(shared.block_piece(AttentionStep::block, index, of_block(index - begin)));
    });
    const int64_t first_task = begin / shared.blocks();
    const int64_t tasks = (end - 1) / shared.blocks() + 1 - first_task;
    for_each_piece(tasks * sizes.key_parts, 0, [&](int64_t i, float*) {
      const int64_t task = first_task + i % tasks;
      const int64_t last = std::min(end, (task + 1) * shared.blocks());
      for (int64_t index = std::max(begin, task * shared.blocks()); index < last; ++index) {
        AttentionPiece piece = shared.block_piece(AttentionStep::sums, index, of_block(index - begin));
        piece.part = i / tasks;
        run(piece);
      }
    });
  }
  shared.for_each_token_block(AttentionStep::key_rows, run);
}

}  // namespace attention_threads

template <class T>
void run_attention(const kernels::AttentionShape& shape, const kernels::AttentionInputsOf<T>& inputs, T* out,
                   float* lse) {
  using namespace attention_threads;
  const AttentionSizes sizes = kernels::attention_sizes(shape, false);
  const SharedTasks shared(shape, sizes);
  for_whole_tasks(shared.first(), sizes, [&](float* scratch, int64_t begin, int64_t end) {
    kernels::attention_forward(shape, inputs, out, lse, scratch, begin, end);
  });
  if (shared.tasks() == 0) return;
  const auto run = [&](const AttentionPiece& piece) {
    kernels::attention_forward_piece(shape, inputs, out, lse, piece);
  };
  shared.for_each_token_block(AttentionStep::keys, run);
  const int64_t all = shared.tasks() * shared.blocks();
  for_each_piece(all, sizes.block_floats, [&](int64_t i, float* of_block) {
    run(shared.block_piece(AttentionStep::block, all - 1 - i, of_block));
  });
}

template <class T>
void run_attention_backward(const kernels::AttentionShape& shape, const kernels::AttentionInputsOf<T>& inputs,
                            const kernels::AttentionGradientsOf<T>& gradients) {
  using namespace attention_threads;
  const AttentionSizes sizes = kernels::attention_sizes(shape, true);
  const SharedTasks shared(shape, sizes);
  for_whole_tasks(shared.first(), sizes, [&](float* scratch, int64_t begin, int64_t end) {
    kernels::attention_backward(shape, inputs, gradients, scratch, begin, end);
  });
  if (shared.tasks() == 0) return;
  shared_backward(shared, sizes, [&](const AttentionPiece& piece) {
    kernels::attention_backward_piece(shape, inputs, gradients, piece);
  });
}

template void run_attention(const kernels::AttentionShape&, const kernels::AttentionInputs&, float*, float*);
template void run_attention(const kernels::AttentionShape&, const kernels::AttentionInputsOf<kernels::Bfloat16>&,
                            kernels::Bfloat16*, float*);
template void run_attention_backward(const kernels::AttentionShape&, const kernels::AttentionInputs&,
                                     const kernels::AttentionGradients&);
template void run_attention_backward(const kernels::AttentionShape&,
                                     const kernels::AttentionInputsOf<kernels::Bfloat16>&,
                                     const kernels::AttentionGradientsOf<kernels::Bfloat16>&);

}  // namespace siamese::ops
