// Attention backward (the equations stand in siamese/kernels/attention.h), included once per SIMD target.
#include "siamese/kernels/attention_blocks-inl.h"

#if defined(SIAMESE_KERNELS_ATTENTION_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SIAMESE_KERNELS_ATTENTION_BACKWARD_INL_H_
#undef SIAMESE_KERNELS_ATTENTION_BACKWARD_INL_H_
#else
#define SIAMESE_KERNELS_ATTENTION_BACKWARD_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

// dout's row into scratch, zero padded; returns its product with out's.
template <class T>
HWY_INLINE float gradient_row(const T* HWY_RESTRICT d_out, const T* HWY_RESTRICT out, int64_t dim, int64_t padded,
                              float* HWY_RESTRICT copy) {
  const Floats d;
  auto sum = hn::Zero(d);
  for (int64_t i = dim; i < padded; ++i) copy[i] = 0;
  for_each_vector(0, dim, [&](int64_t i, auto access) HWY_ATTR {
    const auto value = access.load(d, d_out + i);
    sum = hn::MulAdd(value, access.load(d, out + i), sum);
    access.store(value, d, copy + i);
  });
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// The gradients of `count` rows of a head, from token `first` on, out of scratch.
template <class T>
HWY_NOINLINE void backward_rows(const HeadRows& rows, const T* x, int64_t stride, int64_t first, int64_t count,
                                const float* rstd, float* dy, T* dx, float* d_gain) {
  for (int64_t i = 0; i < count; ++i) {
    const int64_t offset = (first + i) * stride;
    head_row_backward(rows, x + offset, rstd[i], first + i, dy + i * rows.padded, dx + offset, d_gain);
  }
}

// What a query head reads and writes in backward, and what is read after it (null: nothing).
template <class T>
struct HeadGradient {
  const T* q;
  const T* out;
  const float* lse;
  const T* d_out;
  T* d_q;
  const T* next_q;
  const T* next_out;
  const T* next_d_out;
  const T* next_k;
  const T* next_v;
};

// The rows of one block in backward (Scratch says what they hold).
struct BlockRows {
  BlockRows(const Scratch& at, float* of_block)
      : p(of_block + at.p),
        ds(of_block + at.ds),
        q(of_block + at.q),
        dq(of_block + at.dq),
        d_out(of_block + at.d_out),
        lse(of_block + at.row_a),
        delta(of_block + at.row_b),
        rstd(of_block + at.q_rstd),
        ds_two(of_block + at.ds_two),
        q_two(of_block + at.q_two),
        d_out_two(of_block + at.d_out_two) {}

  float *p, *ds, *q, *dq, *d_out;
  float *lse, *delta, *rstd;  // one number a row
  float *ds_two, *q_two, *d_out_two;
};

// q, dout, lse and delta of the block; zeros in p and ds where a product reads past the diagonal and the scores' own
// tile may not have written.
template <class Block, class T>
HWY_INLINE void load_block(const Block& block, const HeadGradient<T>& head, const BlockRows& to) {
  const Floats d;
  const Task& task = block.task;
  const Scratch& at = block.at;
  for (int64_t i = 0; i < block.rows; ++i) {
    const int64_t token = block.first + i;
    to.rstd[i] = head_row(task.q_rows, head.q + token * task.qkv_stride, token, to.q + i * at.dim);
    to.delta[i] = gradient_row(head.d_out + token * task.out_stride, head.out + token * task.out_stride, task.dim,
                               at.dim, to.d_out + i * at.dim);
    to.lse[i] = head.lse[token] * kLog2E;
    for (int64_t key = whole_vectors(task.keys_before(token + 1)); key < block.columns_read(i); key += lanes()) {
      hn::StoreU(hn::Zero(d), d, to.p + i * at.keys + key);
      hn::StoreU(hn::Zero(d), d, to.ds + i * at.keys + key);
    }
  }
}

template <class Block, class T>
HWY_INLINE void queue_next_rows(const Block& block, const HeadGradient<T>& head, PrefetchQueue& queue) {
  const Task& task = block.task;
  block.queue_next(head.q, head.next_q, task.qkv_stride, queue);
  block.queue_next(head.out, head.next_out, task.out_stride, queue);
  block.queue_next(head.d_out, head.next_d_out, task.out_stride, queue);
  if (block.last()) queue.add(head.next_v, task.qkv_stride, task.tokens);
  if (block.last()) queue.add(head.next_k, task.qkv_stride, task.tokens);
  queue.spread(2 * block.tiles_across_keys());
}

// p = 2^(s - lse), both in powers of two; 0 past the diagonal and before the window. Static, as the next: else its
// lambda is a symbol that the linker may replace, which costs a call for each vector (2 % of backward).
template <class Block>
static HWY_INLINE void recompute_p(const Block& block, const float* k_columns, const BlockRows& rows,
                                   PrefetchQueue& queue) {
  const Floats d;
  // Copies of what the tiles need: through the structs each would be two loads more.
  const Task& task = block.task;
  float* const p = rows.p;
  const float* const lse = rows.lse;
  const int64_t first = block.first;
  const int64_t begin = block.begin;
  const int64_t stride = block.at.keys;
  block.across_keys(rows.q, k_columns, queue, [&](int64_t row, int64_t column, FloatVector value) HWY_ATTR {
    auto share = exp2_of_negative(hn::Sub(value, hn::Set(d, lse[row])));
    const int64_t key = begin + column;
    const int64_t seen = task.keys_before(first + row + 1);
    const int64_t from = task.first_key(first + row);
    if (key + lanes() > seen) share = hn::IfThenElseZero(lanes_before(key, seen), share);
    if (key < from) share = hn::IfThenZeroElse(lanes_before(key, from), share);
    hn::StoreU(share, d, p + row * stride + key);
  });
}

// ds / scale = p (dout . v - delta)
template <class Block>
static HWY_INLINE void score_gradients(const Block& block, const float* v_columns, const BlockRows& rows,
                                       PrefetchQueue& queue) {
  const Floats d;
  const float* const p = rows.p + block.begin;
  float* const ds = rows.ds + block.begin;
  const float* const delta = rows.delta;
  const int64_t stride = block.at.keys;
  block.across_keys(rows.d_out, v_columns, queue, [&](int64_t row, int64_t key, FloatVector value) HWY_ATTR {
    const auto share = hn::LoadU(d, p + row * stride + key);
    hn::StoreU(hn::Mul(share, hn::Sub(value, hn::Set(d, delta[row]))), d, ds + row * stride + key);
  });
}

#if SIAMESE_KERNELS_BFLOAT16_PAIRS
// Two rows of `rows` in one, each of the vectors that vectors(row) says.
template <class Vectors>
HWY_INLINE void pack_all_rows_of_two(const float* from, int64_t stride, int64_t rows, const Vectors& vectors,
                                     float* to) {
  for (int64_t i = 0; i < rows; i += 2) {
    const float* const second = i + 1 < rows ? from + (i + 1) * stride : nullptr;
    pack_rows_of_two(from + i * stride, second, vectors(i), to + i / 2 * stride);
  }
}

// q and dout in both kinds of pairs.
HWY_INLINE void pack_block(const BlockOf<true>& block, const BlockRows& rows) {
  const int64_t dim = block.at.dim;
  const auto vectors = [&](int64_t) { return dim / lanes(); };
  pack_all_rows_of_two(rows.q, dim, block.rows, vectors, rows.q_two);
  pack_all_rows_of_two(rows.d_out, dim, block.rows, vectors, rows.d_out_two);
  for (int64_t i = 0; i < block.rows; ++i) {
    pack_neighbours(rows.q + i * dim, dim / lanes());
    pack_neighbours(rows.d_out + i * dim, dim / lanes());
  }
}

// p two rows in one, in its own place; ds so, and its rows.
HWY_INLINE void pack_scores(const BlockOf<true>& block, const BlockRows& rows) {
  const int64_t keys = block.at.keys;
  const auto vectors = [&](int64_t i) { return in_vectors(block.columns_read(i)); };
  pack_all_rows_of_two(rows.p, keys, block.rows, vectors, rows.p);
  pack_all_rows_of_two(rows.ds, keys, block.rows, vectors, rows.ds_two);
  for (int64_t i = 0; i < block.rows; ++i) pack_neighbours(rows.ds + i * keys, vectors(i));
}
#endif

// dq of one block of rows of a query head; p, ds, q and dout of its rows stay in `of_block`.
template <bool kPairs, class T>
void backward_block(const Task& task, const Scratch& at, const HeadGradient<T>& head, int64_t first, float* d_gain,
                    const float* of_task, float* of_block) {
  const Floats d;
  const BlockRows rows(at, of_block);
  float* const dq = rows.dq;
  HeadRows back = task.q_rows;
  back.factor = task.scale;
  const BlockOf<kPairs> block(task, at, first);
  load_block(block, head, rows);
#if SIAMESE_KERNELS_BFLOAT16_PAIRS
  if constexpr (kPairs) pack_block(block, rows);
#endif
  PrefetchQueue queue(task.dim);
  queue_next_rows(block, head, queue);
  recompute_p(block, of_task + at.k_columns, rows, queue);
  score_gradients(block, of_task + at.v_columns, rows, queue);
#if SIAMESE_KERNELS_BFLOAT16_PAIRS
  if constexpr (kPairs) pack_scores(block, rows);
#endif
  block.over_keys(rows.ds, of_task + at.k, [&](int64_t row, int64_t col, FloatVector value) HWY_ATTR {
    hn::StoreU(value, d, dq + row * at.dim + col);
  });
  backward_rows(back, head.q, task.qkv_stride, first, block.rows, rows.rstd, dq, head.d_q, d_gain);
}

// What a block gives to dk and dv of the keys [begin, end).
template <bool kPairs>
void backward_sums(const Task& task, const Scratch& at, int64_t first, int64_t begin, int64_t end, float* of_block,
                   float* of_task) {
  const BlockRows rows(at, of_block);
  const BlockOf<kPairs> block(task, at, first);
  block.over_rows(kPairs ? rows.ds_two : rows.ds, kPairs ? rows.q_two : rows.q, of_task + at.dk, begin, end);
  block.over_rows(rows.p, kPairs ? rows.d_out_two : rows.d_out, of_task + at.dv, begin, end);
}

// k and v of the tokens of one block, and zeros to which dk and dv are added.
template <bool kPairs, class T>
void backward_keys(const Task& task, const Scratch& at, const T* qkv, int64_t first, float* of_task) {
  const int64_t count = std::min(at.block, task.tokens - first);
  fill_zero(of_task + at.dk + first * at.dim, count * at.dim);
  fill_zero(of_task + at.dv + first * at.dim, count * at.dim);
#if SIAMESE_KERNELS_BFLOAT16_PAIRS
  if constexpr (kPairs) {
    float* const few = of_task + at.few + first / at.block * kTransposeRows * at.dim;
    head_columns_of_pairs(task.k_rows, qkv + task.k, task.qkv_stride, first, count, few, of_task + at.k,
                          of_task + at.k_rstd, of_task + at.k_columns, at.keys);
    head_columns_of_pairs(task.v_rows, qkv + task.v, task.qkv_stride, first, count, few, nullptr, of_task + at.v_rstd,
                          of_task + at.v_columns, at.keys);
    if (first + count < task.tokens) return;
    zero_past_tokens(task, of_task + at.k_columns, at.keys);
    zero_past_tokens(task, of_task + at.v_columns, at.keys);
    return;
  }
#endif
  head_columns<true>(task.k_rows, qkv + task.k, task.qkv_stride, first, count, of_task + at.k, nullptr,
                     of_task + at.k_rstd, of_task + at.k_columns, at.keys);
  head_columns<false>(task.v_rows, qkv + task.v, task.qkv_stride, first, count, nullptr,
                      of_task + at.few + first / at.block * kTransposeRows * at.dim, of_task + at.v_rstd,
                      of_task + at.v_columns, at.keys);
}

// The gradients of k and v of the tokens of one block, from dk and dv.
template <class T>
void backward_key_rows(const Task& task, const Scratch& at, const T* qkv, T* d_qkv, int64_t first, float* d_k_gain,
                       float* d_v_gain, float* of_task) {
  const int64_t count = std::min(at.block, task.tokens - first);
  HeadRows k_back = task.k_rows;
  k_back.factor = kLn2;  // q carried log2(e)
  backward_rows(k_back, qkv + task.k, task.qkv_stride, first, count, of_task + at.k_rstd + first,
                of_task + at.dk + first * at.dim, d_qkv + task.k, d_k_gain);
  backward_rows(task.v_rows, qkv + task.v, task.qkv_stride, first, count, of_task + at.v_rstd + first,
                of_task + at.dv + first * at.dim, d_qkv + task.v, d_v_gain);
}

// Where the gradient of a gain is added to (part: q, k, v), a row for each block; null: not wanted.
HWY_INLINE float* gain_gradient(float* d_gains, const Task& task, const Scratch& at, int64_t index, int64_t head,
                                int64_t first, int64_t part) {
  const int64_t row = (index * task.group + head) * at.blocks + first / at.block;
  return row_or_null(d_gains, (row * 3 + part) * task.dim);
}

// Where a query head and its gradients lie; what follows it is left open.
template <class T>
HeadGradient<T> head_gradient(const Task& task, const AttentionInputsOf<T>& inputs,
                              const AttentionGradientsOf<T>& gradients, int64_t head) {
  const int64_t q = task.q + head * task.dim;
  const int64_t out = task.out + head * task.dim;
  return {inputs.qkv + q,
          gradients.out + out,
          gradients.lse + task.lse + head * task.tokens,
          gradients.d_out + out,
          gradients.d_qkv + q,
          nullptr,
          nullptr,
          nullptr,
          nullptr,
          nullptr};
}

template <bool kPairs, class T>
void backward_tasks(const AttentionShape& shape, const AttentionInputsOf<T>& inputs,
                    const AttentionGradientsOf<T>& gradients, float* scratch, int64_t task_begin, int64_t task_end) {
  const Scratch at(shape, true);
  const T* const qkv = inputs.qkv;
  float* const of_block = scratch + at.task_size;
  for (int64_t index = task_begin; index < task_end; ++index) {
    const Task task(shape, inputs, at, index);
    const Task next(shape, inputs, at, std::min(index + 1, task_end - 1));
    const auto gain = [&](int64_t head, int64_t first, int64_t part) {
      return gain_gradient(gradients.d_gains, task, at, index, head, first, part);
    };
    for (int64_t first = 0; first < task.tokens; first += at.block)
      backward_keys<kPairs>(task, at, qkv, first, scratch);
    for (int64_t head = 0; head < task.group; ++head) {
      HeadGradient<T> now = head_gradient(task, inputs, gradients, head);
      const bool last = head + 1 == task.group;
      now.next_q = last ? qkv + next.q : now.q + task.dim;
      now.next_out = last ? gradients.out + next.out : now.out + task.dim;
      now.next_d_out = last ? gradients.d_out + next.out : now.d_out + task.dim;
      now.next_k = last ? qkv + next.k : nullptr;
      now.next_v = last ? qkv + next.v : nullptr;
      for (int64_t first = 0; first < task.tokens; first += at.block) {
        backward_block<kPairs>(task, at, now, first, gain(head, first, 0), scratch, of_block);
        backward_sums<kPairs>(task, at, first, 0, task.tokens, of_block, scratch);
      }
    }
    for (int64_t first = 0; first < task.tokens; first += at.block) {
      backward_key_rows(task, at, qkv, gradients.d_qkv, first, gain(0, first, 1), gain(0, first, 2), scratch);
    }
  }
  hwy::FlushStream();
}

template <bool kPairs, class T>
void backward_piece(const AttentionShape& shape, const AttentionInputsOf<T>& inputs,
                    const AttentionGradientsOf<T>& gradients, const AttentionPiece& piece) {
  const Scratch at(shape, true);
  const Task task(shape, inputs, at, piece.task);
  const int64_t first = piece.block * at.block;
  const auto gain = [&](int64_t head, int64_t part) {
    return gain_gradient(gradients.d_gains, task, at, piece.task, head, first, part);
  };
  switch (piece.step) {
    case AttentionStep::keys:
      return backward_keys<kPairs>(task, at, inputs.qkv, first, piece.of_task);
    case AttentionStep::block:
      backward_block<kPairs>(task, at, head_gradient(task, inputs, gradients, piece.head), first, gain(piece.head, 0),
                             piece.of_task, piece.of_block);
      return hwy::FlushStream();
    case AttentionStep::sums:
      return backward_sums<kPairs>(task, at, first, piece.part * kKeyPart, (piece.part + 1) * kKeyPart, piece.of_block,
                                   piece.of_task);
    case AttentionStep::key_rows:
      backward_key_rows(task, at, inputs.qkv, gradients.d_qkv, first, gain(0, 1), gain(0, 2), piece.of_task);
      return hwy::FlushStream();
  }
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
