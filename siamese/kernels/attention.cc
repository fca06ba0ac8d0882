#include "siamese/kernels/attention.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "siamese/kernels/attention.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "siamese/kernels/attention_blocks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

int64_t attention_forward_scratch(const AttentionShape& shape) { return Scratch(shape, false).size; }
int64_t attention_backward_scratch(const AttentionShape& shape) { return Scratch(shape, true).size; }

// p up to its sum: scores -> their powers of two, relative to the row's largest; sum -> 1 / the row's sum of them. One
// step for all rows, then the next: a row's reduction takes long to end, but others' can start.
HWY_INLINE void softmax_rows(const Block& block, float* p, float* max, float* sum, float* lse) {
  const auto seen = [&](int64_t i) { return block.task.keys_before(block.first + i + 1); };
  const int64_t stride = block.at.keys;
  for (int64_t i = 0; i < block.rows; ++i) max[i] = row_max(p + i * stride, seen(i));
  for (int64_t i = 0; i < block.rows; ++i) {
    sum[i] = row_exp2(p + i * stride, seen(i), block.columns_read(i), max[i]);
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
template <class T>
HWY_INLINE void queue_next_rows(const Block& block, const HeadForward<T>& head, PrefetchQueue& queue) {
  const Task& task = block.task;
  block.queue_next(head.q, head.next_q, task.qkv_stride, queue);
  if (block.last()) queue.add(head.next_v, task.qkv_stride, task.tokens);
  if (block.last()) queue.add(head.next_k, task.qkv_stride, task.tokens);
  queue.spread(block.tiles_across_keys());
}

// out of one query head, a block of rows at a time: q, s = q k^T, p up to its sum, p v divided by it.
template <class T>
void forward_head(const Task& task, const Scratch& at, const HeadForward<T>& head, float* scratch) {
  const Floats d;
  float* const p = scratch + at.p;
  float* const q = scratch + at.q;
  float* const sum = scratch + at.row_a;
  float* const max = scratch + at.row_b;
  const bool past_cache = can_store_past_cache(head.out, task.dim);
  for (int64_t first = 0; first < task.tokens; first += at.block) {
    const Block block(task, at, first);
    for (int64_t i = 0; i < block.rows; ++i) {
      head_row(task.q_rows, head.q + (first + i) * task.qkv_stride, first + i, q + i * at.dim);
    }
    PrefetchQueue queue(task.dim);
    queue_next_rows(block, head, queue);
    block.across_keys(q, scratch + at.k_columns, queue, [&](int64_t row, int64_t key, FloatVector value) HWY_ATTR {
      hn::StoreU(value, d, p + row * at.keys + key);
    });
    softmax_rows(block, p, max, sum, head.lse + first);
    T* const out = head.out + first * task.out_stride;
    block.over_keys(p, scratch + at.v, [&](int64_t row, int64_t col, FloatVector value) HWY_ATTR {
      const auto result = hn::Mul(value, hn::Set(d, sum[row]));
      T* const to = out + row * task.out_stride + col;
      if (col + lanes() <= task.dim) return store_result(WholeVector(), past_cache, result, to);
      PartVector{static_cast<size_t>(task.dim - col)}.store(result, d, to);
    });
  }
}

template <class T>
void forward_tasks(const AttentionShape& shape, const AttentionInputsOf<T>& inputs, T* out, float* lse, float* scratch,
                   int64_t task_begin, int64_t task_end) {
  const Scratch at(shape, false);
  const T* const qkv = inputs.qkv;
  for (int64_t index = task_begin; index < task_end; ++index) {
    const Task task(shape, inputs, at, index);
    const Task next(shape, inputs, at, std::min(index + 1, task_end - 1));
    head_columns<false>(task.k_rows, qkv + task.k, task.qkv_stride, task.tokens, scratch + at.k, nullptr,
                        scratch + at.k_columns, at.keys);
    for (int64_t token = 0; token < task.tokens; ++token) {
      head_row(task.v_rows, qkv + task.v + token * task.qkv_stride, token, scratch + at.v + token * at.dim);
    }
    for (int64_t head = 0; head < task.group; ++head) {
      const bool last = head + 1 == task.group;
      const T* const q = qkv + task.q + head * task.dim;
      forward_head(task, at,
                   HeadForward<T>{q, out + task.out + head * task.dim, lse + task.lse + head * task.tokens,
                                  last ? qkv + next.q : q + task.dim, last ? qkv + next.k : nullptr,
                                  last ? qkv + next.v : nullptr},
                   scratch);
    }
  }
  hwy::FlushStream();
}

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
  float* d_gain;
  const T* next_q;
  const T* next_out;
  const T* next_d_out;
  const T* next_k;
  const T* next_v;
};

// A thread's rows of one block in backward (Scratch says what they hold).
struct BlockRows {
  BlockRows(const Scratch& at, float* scratch)
      : p(scratch + at.p),
        ds(scratch + at.ds),
        q(scratch + at.q),
        dq(scratch + at.dq),
        d_out(scratch + at.d_out),
        lse(scratch + at.row_a),
        delta(scratch + at.row_b),
        rstd(scratch + at.q_rstd) {}

  float *p, *ds, *q, *dq, *d_out;
  float *lse, *delta, *rstd;  // one number a row
};

// q, dout, lse and delta of the block; zeros in p and ds where a product reads past the diagonal and the scores' own
// tile may not have written.
template <class T>
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

template <class T>
HWY_INLINE void queue_next_rows(const Block& block, const HeadGradient<T>& head, PrefetchQueue& queue) {
  const Task& task = block.task;
  block.queue_next(head.q, head.next_q, task.qkv_stride, queue);
  block.queue_next(head.out, head.next_out, task.out_stride, queue);
  block.queue_next(head.d_out, head.next_d_out, task.out_stride, queue);
  if (block.last()) queue.add(head.next_v, task.qkv_stride, task.tokens);
  if (block.last()) queue.add(head.next_k, task.qkv_stride, task.tokens);
  queue.spread(2 * block.tiles_across_keys());
}

// p = 2^(s - lse), both in powers of two; 0 past the diagonal. Static, as the next: else its
// lambda is a symbol that the linker may replace, which costs a call for each vector (2 % of backward).
static HWY_INLINE void recompute_p(const Block& block, const float* k_columns, const BlockRows& rows,
                                   PrefetchQueue& queue) {
  const Floats d;
  // Copies of what the tiles need: through the structs each would be two loads more.
  const Task& task = block.task;
  float* const p = rows.p;
  const float* const lse = rows.lse;
  const int64_t first = block.first;
  const int64_t stride = block.at.keys;
  block.across_keys(rows.q, k_columns, queue, [&](int64_t row, int64_t key, FloatVector value) HWY_ATTR {
    auto share = exp2_of_negative(hn::Sub(value, hn::Set(d, lse[row])));
    const int64_t seen = task.keys_before(first + row + 1);
    if (key + lanes() > seen) share = hn::IfThenElseZero(lanes_before(key, seen), share);
    hn::StoreU(share, d, p + row * stride + key);
  });
}

// ds / scale = p (dout . v - delta)
static HWY_INLINE void score_gradients(const Block& block, const float* v_columns, const BlockRows& rows,
                                       PrefetchQueue& queue) {
  const Floats d;
  const float* const p = rows.p;
  float* const ds = rows.ds;
  const float* const delta = rows.delta;
  const int64_t stride = block.at.keys;
  block.across_keys(rows.d_out, v_columns, queue, [&](int64_t row, int64_t key, FloatVector value) HWY_ATTR {
    const auto share = hn::LoadU(d, p + row * stride + key);
    hn::StoreU(hn::Mul(share, hn::Sub(value, hn::Set(d, delta[row]))), d, ds + row * stride + key);
  });
}

// dq of one query head, and what it gives to dk and dv, which stay in the scratch until the task's last head.
template <class T>
void backward_head(const Task& task, const Scratch& at, const HeadGradient<T>& head, float* scratch) {
  const Floats d;
  const BlockRows rows(at, scratch);
  float* const dq = rows.dq;
  HeadRows back = task.q_rows;
  back.factor = task.scale;
  for (int64_t first = 0; first < task.tokens; first += at.block) {
    const Block block(task, at, first);
    load_block(block, head, rows);
    PrefetchQueue queue(task.dim);
    queue_next_rows(block, head, queue);
    recompute_p(block, scratch + at.k_columns, rows, queue);
    score_gradients(block, scratch + at.v_columns, rows, queue);
    block.over_keys(rows.ds, scratch + at.k, [&](int64_t row, int64_t col, FloatVector value) HWY_ATTR {
      hn::StoreU(value, d, dq + row * at.dim + col);
    });
    block.over_rows(rows.ds, rows.q, scratch + at.dk);
    block.over_rows(rows.p, rows.d_out, scratch + at.dv);
    backward_rows(back, head.q, task.qkv_stride, first, block.rows, rows.rstd, dq, head.d_q, head.d_gain);
  }
}

template <class T>
void backward_tasks(const AttentionShape& shape, const AttentionInputsOf<T>& inputs,
                    const AttentionGradientsOf<T>& gradients, float* scratch, int64_t task_begin, int64_t task_end) {
  const Scratch at(shape, true);
  const T* const qkv = inputs.qkv;
  for (int64_t index = task_begin; index < task_end; ++index) {
    const Task task(shape, inputs, at, index);
    const Task next(shape, inputs, at, std::min(index + 1, task_end - 1));
    const auto gain_gradient = [&](int64_t part) {
      return gradients.d_gains == nullptr ? nullptr : gradients.d_gains + (index * 3 + part) * task.dim;
    };
    head_columns<true>(task.k_rows, qkv + task.k, task.qkv_stride, task.tokens, scratch + at.k, scratch + at.k_rstd,
                       scratch + at.k_columns, at.keys);
    head_columns<false>(task.v_rows, qkv + task.v, task.qkv_stride, task.tokens, scratch + at.v, scratch + at.v_rstd,
                        scratch + at.v_columns, at.keys);
    fill_zero(scratch + at.dk, task.tokens * at.dim);
    fill_zero(scratch + at.dv, task.tokens * at.dim);
    for (int64_t head = 0; head < task.group; ++head) {
      const bool last = head + 1 == task.group;
      const int64_t q = task.q + head * task.dim;
      const int64_t out = task.out + head * task.dim;
      const int64_t next_q = last ? next.q : q + task.dim;
      const int64_t next_out = last ? next.out : out + task.dim;
      backward_head(task, at,
                    HeadGradient<T>{qkv + q, gradients.out + out, gradients.lse + task.lse + head * task.tokens,
                                    gradients.d_out + out, gradients.d_qkv + q, gain_gradient(0), qkv + next_q,
                                    gradients.out + next_out, gradients.d_out + next_out, last ? qkv + next.k : nullptr,
                                    last ? qkv + next.v : nullptr},
                    scratch);
    }
    HeadRows k_back = task.k_rows;
    k_back.factor = kLn2;  // q carried log2(e)
    backward_rows(k_back, qkv + task.k, task.qkv_stride, 0, task.tokens, scratch + at.k_rstd, scratch + at.dk,
                  gradients.d_qkv + task.k, gain_gradient(1));
    backward_rows(task.v_rows, qkv + task.v, task.qkv_stride, 0, task.tokens, scratch + at.v_rstd, scratch + at.dv,
                  gradients.d_qkv + task.v, gain_gradient(2));
  }
  hwy::FlushStream();
}

void attention_forward_of_floats(const AttentionShape& shape, const AttentionInputs& inputs, float* out, float* lse,
                                 float* scratch, int64_t task_begin, int64_t task_end) {
  forward_tasks(shape, inputs, out, lse, scratch, task_begin, task_end);
}
void attention_forward_of_bfloat16(const AttentionShape& shape, const AttentionInputsOf<Bfloat16>& inputs,
                                   Bfloat16* out, float* lse, float* scratch, int64_t task_begin, int64_t task_end) {
  forward_tasks(shape, inputs, out, lse, scratch, task_begin, task_end);
}
void attention_backward_of_floats(const AttentionShape& shape, const AttentionInputs& inputs,
                                  const AttentionGradients& gradients, float* scratch, int64_t task_begin,
                                  int64_t task_end) {
  backward_tasks(shape, inputs, gradients, scratch, task_begin, task_end);
}
void attention_backward_of_bfloat16(const AttentionShape& shape, const AttentionInputsOf<Bfloat16>& inputs,
                                    const AttentionGradientsOf<Bfloat16>& gradients, float* scratch, int64_t task_begin,
                                    int64_t task_end) {
  backward_tasks(shape, inputs, gradients, scratch, task_begin, task_end);
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace siamese::kernels {

HWY_EXPORT(attention_forward_scratch);
HWY_EXPORT(attention_backward_scratch);
HWY_EXPORT(attention_forward_of_floats);
HWY_EXPORT(attention_forward_of_bfloat16);
HWY_EXPORT(attention_backward_of_floats);
HWY_EXPORT(attention_backward_of_bfloat16);

int64_t attention_forward_scratch(const AttentionShape& shape) {
  return HWY_DYNAMIC_DISPATCH(attention_forward_scratch)(shape);
}

int64_t attention_backward_scratch(const AttentionShape& shape) {
  return HWY_DYNAMIC_DISPATCH(attention_backward_scratch)(shape);
}

void attention_forward(const AttentionShape& shape, const AttentionInputs& inputs, float* out, float* lse,
                       float* scratch, int64_t task_begin, int64_t task_end) {
  HWY_DYNAMIC_DISPATCH(attention_forward_of_floats)(shape, inputs, out, lse, scratch, task_begin, task_end);
}

void attention_forward(const AttentionShape& shape, const AttentionInputsOf<Bfloat16>& inputs, Bfloat16* out,
                       float* lse, float* scratch, int64_t task_begin, int64_t task_end) {
  HWY_DYNAMIC_DISPATCH(attention_forward_of_bfloat16)(shape, inputs, out, lse, scratch, task_begin, task_end);
}

void attention_backward(const AttentionShape& shape, const AttentionInputs& inputs, const AttentionGradients& gradients,
                        float* scratch, int64_t task_begin, int64_t task_end) {
  HWY_DYNAMIC_DISPATCH(attention_backward_of_floats)(shape, inputs, gradients, scratch, task_begin, task_end);
}

void attention_backward(const AttentionShape& shape, const AttentionInputsOf<Bfloat16>& inputs,
                        const AttentionGradientsOf<Bfloat16>& gradients, float* scratch, int64_t task_begin,
                        int64_t task_end) {
  HWY_DYNAMIC_DISPATCH(attention_backward_of_bfloat16)(shape, inputs, gradients, scratch, task_begin, task_end);
}

}  // namespace siamese::kernels
#endif  // HWY_ONCE
