// Attention forward (the equations stand in siamese/kernels/attention.h), included once per SIMD target.
#include "siamese/kernels/attention_blocks-inl.h"

#if defined(SIAMESE_KERNELS_ATTENTION_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SIAMESE_KERNELS_ATTENTION_FORWARD_INL_H_
#undef SIAMESE_KERNELS_ATTENTION_FORWARD_INL_H_
#else
#define SIAMESE_KERNELS_ATTENTION_FORWARD_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

// Zeros for the keys before a row's window, in whole vectors, and what becomes zero in the vector that it begins in.
// Returns where that begins.
template <class Block>
HWY_INLINE int64_t hide_before_window(const Block& block, int64_t i, float* row) {
  const int64_t first_key = block.task.first_key(block.first + i);
  const int64_t from = first_key / lanes() * lanes();
  for (int64_t key = block.begin; key < from; ++key) row[key] = 0;
  for (int64_t key = from; key < first_key; ++key) row[key] = -std::numeric_limits<float>::infinity();
  return from;
}

// p up to its sum: scores -> their powers of two, relative to the row's largest; sum -> 1 / the row's sum of them. One
// step for all rows, then the next: a row's reduction takes long to end, but others' can start.
template <class Block>
HWY_INLINE void softmax_rows(const Block& block, float* p, float* max, float* sum, float* lse) {
  const auto seen = [&](int64_t i) { return block.task.keys_before(block.first + i + 1); };
  const auto from = [&](int64_t i) { return block.task.first_key(block.first + i) / lanes() * lanes(); };
  const int64_t stride = block.at.keys;
  for (int64_t i = 0; i < block.rows; ++i) {
    const int64_t start = hide_before_window(block, i, p + i * stride);
    max[i] = row_max(p + i * stride + start, seen(i) - start);
  }
  for (int64_t i = 0; i < block.rows; ++i) {
    const int64_t start = from(i);
    sum[i] = row_exp2(p + i * stride + start, seen(i) - start, block.columns_read(i) - start, max[i]);
  }
  for (int64_t i = 0; i < block.rows; ++i) {
    lse[i] = (max[i] + std::log2(sum[i])) * kLn2;
    sum[i] = 1 / sum[i];
  }
}

// What a query head reads and writes in forward, and what is read after it (null: nothing).
template <class T>
struct HeadForward {
  const T* q;
  T* out;
  float* lse;
  const T* next_q;
  const T* next_k;
  const T* next_v;
};

// What is read while the block's products are computed: the rows of the next block, then of the next head.
template <class Block, class T>
HWY_INLINE void queue_next_rows(const Block& block, const HeadForward<T>& head, PrefetchQueue& queue) {
  const Task& task = block.task;
  block.queue_next(head.q, head.next_q, task.qkv_stride, queue);
  if (block.last()) queue.add(head.next_v, task.qkv_stride, task.tokens);
  if (block.last()) queue.add(head.next_k, task.qkv_stride, task.tokens);
  queue.spread(block.tiles_across_keys());
}

// out of one block of rows of a query head: q, s = q k^T, p up to its sum, p v divided by it.
template <bool kPairs, class T>
void forward_block(const Task& task, const Scratch& at, const HeadForward<T>& head, int64_t first, const float* of_task,
                   float* of_block) {
  const Floats d;
  float* const p = of_block + at.p;
  float* const q = of_block + at.q;
  float* const sum = of_block + at.row_a;
  float* const max = of_block + at.row_b;
  const bool past_cache = can_store_past_cache(head.out, task.dim);
  const BlockOf<kPairs> block(task, at, first);
  for (int64_t i = 0; i < block.rows; ++i) {
    head_row(task.q_rows, head.q + (first + i) * task.qkv_stride, first + i, q + i * at.dim);
#if SIAMESE_KERNELS_BFLOAT16_PAIRS
    if constexpr (kPairs) pack_neighbours(q + i * at.dim, at.dim / lanes());
#endif
  }
  PrefetchQueue queue(task.dim);
  queue_next_rows(block, head, queue);
  block.across_keys(q, of_task + at.k_columns, queue, [&](int64_t row, int64_t key, FloatVector value) HWY_ATTR {
    hn::StoreU(value, d, p + row * at.keys + block.begin + key);
  });
  softmax_rows(block, p, max, sum, head.lse + first);
#if SIAMESE_KERNELS_BFLOAT16_PAIRS
  for (int64_t i = 0; kPairs && i < block.rows; ++i) {
    pack_neighbours(p + i * at.keys, in_vectors(block.columns_read(i)));
  }
#endif
  T* const out = head.out + first * task.out_stride;
  block.over_keys(p, of_task + at.v, [&](int64_t row, int64_t col, FloatVector value) HWY_ATTR {
    const auto result = hn::Mul(value, hn::Set(d, sum[row]));
    T* const to = out + row * task.out_stride + col;
    if (col + lanes() <= task.dim) return store_result(WholeVector(), past_cache, result, to);
    PartVector{static_cast<size_t>(task.dim - col)}.store(result, d, to);
  });
}

// k and v of the tokens of one block.
template <bool kPairs, class T>
void forward_keys(const Task& task, const Scratch& at, const T* qkv, int64_t first, float* of_task) {
  const int64_t count = std::min(at.block, task.tokens - first);
#if SIAMESE_KERNELS_BFLOAT16_PAIRS
  if constexpr (kPairs) {
    float* const few = of_task + at.few + first / at.block * kTransposeRows * at.dim;
    head_columns_of_pairs(task.k_rows, qkv + task.k, task.qkv_stride, first, count, few, nullptr, nullptr,
                          of_task + at.k_columns, at.keys);
    head_columns_of_pairs(task.v_rows, qkv + task.v, task.qkv_stride, first, count, few, of_task + at.v, nullptr,
                          nullptr, at.keys);
    return;
  }
#endif
  head_columns<false>(task.k_rows, qkv + task.k, task.qkv_stride, first, count, nullptr,
                      of_task + at.few + first / at.block * kTransposeRows * at.dim, nullptr, of_task + at.k_columns,
                      at.keys);
  for (int64_t token = first; token < first + count; ++token) {
    head_row(task.v_rows, qkv + task.v + token * task.qkv_stride, token, of_task + at.v + token * at.dim);
  }
}

template <bool kPairs, class T>
void forward_tasks(const AttentionShape& shape, const AttentionInputsOf<T>& inputs, T* out, float* lse, float* scratch,
                   int64_t task_begin, int64_t task_end) {
  const Scratch at(shape, false);
  const T* const qkv = inputs.qkv;
  for (int64_t index = task_begin; index < task_end; ++index) {
    const Task task(shape, inputs, at, index);
    const Task next(shape, inputs, at, std::min(index + 1, task_end - 1));
    for (int64_t first = 0; first < task.tokens; first += at.block) forward_keys<kPairs>(task, at, qkv, first, scratch);
    for (int64_t head = 0; head < task.group; ++head) {
      const bool last = head + 1 == task.group;
      const T* const q = qkv + task.q + head * task.dim;
      const HeadForward<T> now{q,
                               out + task.out + head * task.dim,
                               lse + task.lse + head * task.tokens,
                               last ? qkv + next.q : q + task.dim,
                               last ? qkv + next.k : nullptr,
                               last ? qkv + next.v : nullptr};
      for (int64_t first = 0; first < task.tokens; first += at.block) {
        forward_block<kPairs>(task, at, now, first, scratch, scratch + at.task_size);
      }
    }
  }
  hwy::FlushStream();
}

template <bool kPairs, class T>
void forward_piece(const AttentionShape& shape, const AttentionInputsOf<T>& inputs, T* out, float* lse,
                   const AttentionPiece& piece) {
  const Scratch at(shape, false);
  const Task task(shape, inputs, at, piece.task);
  const int64_t first = piece.block * at.block;
  if (piece.step == AttentionStep::keys) return forward_keys<kPairs>(task, at, inputs.qkv, first, piece.of_task);
  const HeadForward<T> head{inputs.qkv + task.q + piece.head * task.dim,
                            out + task.out + piece.head * task.dim,
                            lse + task.lse + piece.head * task.tokens,
                            nullptr,
                            nullptr,
                            nullptr};
  forward_block<kPairs>(task, at, head, first, piece.of_task, piece.of_block);
  hwy::FlushStream();
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
