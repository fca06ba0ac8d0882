#include "siamese/kernels/attention.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "siamese/kernels/attention.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "siamese/kernels/attention_rows-inl.h"
#include "siamese/kernels/tile_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

// Query rows that are worked on at once: whole tiles of any height; their scores against all keys stay in the cache.
inline constexpr int64_t kBlockRows = 48;
inline constexpr int64_t kTransposeRows = 4;

HWY_INLINE int64_t lanes() { return static_cast<int64_t>(hn::Lanes(Floats())); }
HWY_INLINE int64_t in_vectors(int64_t floats) { return (floats + lanes() - 1) / lanes(); }
HWY_INLINE int64_t whole_vectors(int64_t floats) { return in_vectors(floats) * lanes(); }

// Where everything lies in the scratch; a float offset each. Rows of keys are an odd number of cache lines apart, since
// a power of two would put a column into few sets of the cache.
struct Scratch {
  Scratch(const AttentionShape& shape, bool backward) : dim(whole_vectors(shape.head_dim)) {
    constexpr int64_t kLine = 16;
    const int64_t unit = std::max(kLine, lanes());
    keys = (shape.tokens + unit - 1) / unit * unit;
    if (keys / unit % 2 == 0) keys += unit;
    const int64_t block = std::min(kBlockRows, shape.tokens);
    const auto take = [this, unit](int64_t floats) {
      const int64_t offset = size;
      size += (floats + unit - 1) / unit * unit;
      return offset;
    };
    k_columns = take(shape.head_dim * keys);
    v = take(backward ? kTransposeRows * dim : shape.tokens * dim);
    k = take(backward ? shape.tokens * dim : kTransposeRows * dim);
    q = take(block * dim);
    p = take(block * keys);
    row_a = take(block);
    if (!backward) return;
    v_columns = take(shape.head_dim * keys);
    ds = take(block * keys);
    d_out = take(block * dim);
    dq = take(block * dim);
    dk = take(shape.tokens * dim);
    dv = take(shape.tokens * dim);
    row_b = take(block);
    q_rstd = take(block);
    k_rstd = take(shape.tokens);
    v_rstd = take(shape.tokens);
  }

  int64_t dim;       // of a row of q, k, v
  int64_t keys = 0;  // of a row of scores, or of the columns of k and v
  int64_t size = 0;
  int64_t k_columns, v, k, q, p, row_a;                              // NOLINT
  int64_t v_columns = 0, ds = 0, d_out = 0, dq = 0, dk = 0, dv = 0;  // NOLINT
  int64_t row_b = 0, q_rstd = 0, k_rstd = 0, v_rstd = 0;             // NOLINT
};

int64_t attention_forward_scratch(const AttentionShape& shape) { return Scratch(shape, false).size; }
int64_t attention_backward_scratch(const AttentionShape& shape) { return Scratch(shape, true).size; }

// One task: where its heads lie, and how their rows become q, k and v.
struct Task {
  Task(const AttentionShape& s, const AttentionInputs& inputs, const Scratch& scratch, int64_t task)
      : tokens(s.tokens),
        dim(s.head_dim),
        group(s.heads / s.kv_heads),
        qkv_stride((s.heads + 2 * s.kv_heads) * s.head_dim),
        out_stride(s.heads * s.head_dim),
        causal(s.causal) {
    const int64_t sample = task / s.kv_heads;
    const int64_t kv_head = task % s.kv_heads;
    const int64_t base = sample * tokens * qkv_stride;
    q = base + kv_head * group * dim;
    k = base + (s.heads + kv_head) * dim;
    v = base + (s.heads + s.kv_heads + kv_head) * dim;
    out = sample * tokens * out_stride + kv_head * group * dim;
    lse = (sample * s.heads + kv_head * group) * tokens;
    scale = static_cast<float>(1 / std::sqrt(static_cast<double>(dim)));
    // Scores are in powers of two: q carries the scale and log2(e).
    q_rows = {dim, scratch.dim, inputs.q_gain, inputs.cos, inputs.sin, s.eps, scale * kLog2E};
    k_rows = {dim, scratch.dim, inputs.k_gain, inputs.cos, inputs.sin, s.eps, 1};
    v_rows = {dim, scratch.dim, inputs.v_gain, nullptr, nullptr, s.eps, 1};
  }

  // How many keys the query rows before `row` see at most.
  int64_t keys_before(int64_t row) const { return causal ? row : tokens; }

  int64_t tokens, dim, group;
  int64_t qkv_stride, out_stride;
  bool causal;
  int64_t q, k, v, out, lse;  // offsets of the first head's first row
  float scale;
  HeadRows q_rows, k_rows, v_rows;
};

HWY_INLINE void fill_zero(float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = 0;
}

// The rows of k (or v) as columns, 0 beyond the last token; kept as rows too with kKeep, else `rows_out` holds a few.
template <bool kKeep>
void head_columns(const HeadRows& rows, const float* x, int64_t stride, int64_t tokens, float* rows_out, float* rstd,
                  float* columns, int64_t keys) {
  for (int64_t token = 0; token < tokens; token += kTransposeRows) {
    const int64_t count = std::min(kTransposeRows, tokens - token);
    float* const out = kKeep ? rows_out + token * rows.padded : rows_out;
    for (int64_t i = 0; i < count; ++i) {
      const float row_rstd = head_row(rows, x + (token + i) * stride, token + i, out + i * rows.padded);
      if (rstd != nullptr) rstd[token + i] = row_rstd;
    }
    transpose(out, rows.padded, count, rows.dim, columns + token, keys);
  }
  for (int64_t i = 0; i < rows.dim; ++i) fill_zero(columns + i * keys + tokens, keys - tokens);
}

// The products of a block of query rows [first, first + rows) of one head, with the causal part of each only.
struct Block {
  const Task& task;
  const Scratch& at;
  int64_t first, rows;
  int64_t keys;  // seen by any of its rows

  // scores-like: rows x keys from q-like rows and k-like columns
  template <class Store>
  HWY_INLINE void across_keys(const float* q, const float* columns, const Store& store) const {
    tile_product(
        rows, in_vectors(keys), BroadcastMatrix{q, at.dim, 1}, RowMatrix{columns, at.keys},
        [&](int64_t row, int64_t count) HWY_ATTR {
          return TileRange{0, task.dim, in_vectors(task.keys_before(first + row + count))};
        },
        store);
  }
  // p k-like: rows x dim, a sum over keys
  template <class Store>
  HWY_INLINE void over_keys(const float* p, const float* k, const Store& store) const {
    tile_product(
        rows, at.dim / lanes(), BroadcastMatrix{p, at.keys, 1}, RowMatrix{k, at.dim},
        [&](int64_t row, int64_t count) HWY_ATTR {
          return TileRange{0, task.keys_before(first + row + count), at.dim / lanes()};
        },
        store);
  }
  // p^T q-like: keys x dim, a sum over the block's rows, added
  HWY_INLINE void over_rows(const float* p, const float* q, float* sum) const {
    tile_product(
        keys, at.dim / lanes(), BroadcastMatrix{p, 1, at.keys}, RowMatrix{q, at.dim},
        [&](int64_t key, int64_t) HWY_ATTR {
          return TileRange{task.causal ? std::max<int64_t>(0, key - first) : 0, rows, at.dim / lanes()};
        },
        [&](int64_t key, int64_t col, FloatVector value) HWY_ATTR {
          float* const to = sum + key * at.dim + col;
          hn::StoreU(hn::Add(hn::LoadU(Floats(), to), value), Floats(), to);
        });
  }
};

void forward_head(const Task& task, const Scratch& at, const float* q, float* out, float* lse, float* scratch) {
  const Floats d;
  float* const inverse = scratch + at.row_a;
  for (int64_t first = 0; first < task.tokens; first += kBlockRows) {
    const int64_t rows = std::min(kBlockRows, task.tokens - first);
    const Block block{task, at, first, rows, task.keys_before(first + rows)};
    for (int64_t i = 0; i < rows; ++i) {
      head_row(task.q_rows, q + (first + i) * task.qkv_stride, first + i, scratch + at.q + i * at.dim);
    }
    float* const p = scratch + at.p;
    block.across_keys(scratch + at.q, scratch + at.k_columns,
                      [&](int64_t row, int64_t key, FloatVector value)
                          HWY_ATTR { hn::StoreU(value, d, p + row * at.keys + key); });
    const int64_t width = whole_vectors(block.keys);
    for (int64_t i = 0; i < rows; ++i) {
      float* const scores = p + i * at.keys;
      const int64_t seen = task.keys_before(first + i + 1);
      const float max = row_max(scores, seen);
      const float sum = row_exp2(scores, seen, width, max);
      inverse[i] = 1 / sum;
      lse[first + i] = (max + std::log2(sum)) * kLn2;
    }
    block.over_keys(p, scratch + at.v, [&](int64_t row, int64_t col, FloatVector value) HWY_ATTR {
      const auto result = hn::Mul(value, hn::Set(d, inverse[row]));
      float* const to = out + (first + row) * task.out_stride + col;
      if (col + lanes() <= task.dim) return WholeVector().store(result, d, to);
      PartVector{static_cast<size_t>(task.dim - col)}.store(result, d, to);
    });
  }
}

void attention_forward(const AttentionShape& shape, const AttentionInputs& inputs, float* out, float* lse,
                       float* scratch, int64_t task_begin, int64_t task_end) {
  const Scratch at(shape, false);
  for (int64_t index = task_begin; index < task_end; ++index) {
    const Task task(shape, inputs, at, index);
    head_columns<false>(task.k_rows, inputs.qkv + task.k, task.qkv_stride, task.tokens, scratch + at.k, nullptr,
                        scratch + at.k_columns, at.keys);
    for (int64_t token = 0; token < task.tokens; ++token) {
      head_row(task.v_rows, inputs.qkv + task.v + token * task.qkv_stride, token, scratch + at.v + token * at.dim);
    }
    for (int64_t head = 0; head < task.group; ++head) {
      forward_head(task, at, inputs.qkv + task.q + head * task.dim, out + task.out + head * task.dim,
                   lse + task.lse + head * task.tokens, scratch);
    }
  }
}

// dout's row into scratch, zero padded; returns its product with out's.
HWY_INLINE float gradient_row(const float* HWY_RESTRICT d_out, const float* HWY_RESTRICT out, int64_t dim,
                              int64_t padded, float* HWY_RESTRICT copy) {
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

// What a query head reads and writes in backward.
struct HeadGradient {
  const float* q;
  const float* out;
  const float* lse;
  const float* d_out;
  float* d_q;
  float* d_gain;
};

void backward_head(const Task& task, const Scratch& at, const HeadGradient& head, float* scratch) {
  const Floats d;
  float* const p = scratch + at.p;
  float* const ds = scratch + at.ds;
  float* const q = scratch + at.q;
  float* const dq = scratch + at.dq;
  float* const d_out = scratch + at.d_out;
  float* const lse = scratch + at.row_a;
  float* const delta = scratch + at.row_b;
  float* const rstd = scratch + at.q_rstd;
  HeadRows back = task.q_rows;
  back.factor = task.scale;
  for (int64_t first = 0; first < task.tokens; first += kBlockRows) {
    const int64_t rows = std::min(kBlockRows, task.tokens - first);
    const Block block{task, at, first, rows, task.keys_before(first + rows)};
    // Tiles beyond the diagonal are not computed; those on its other side read across it.
    const int64_t unsure = task.causal ? first / lanes() * lanes() : whole_vectors(block.keys);
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t token = first + i;
      rstd[i] = head_row(task.q_rows, head.q + token * task.qkv_stride, token, q + i * at.dim);
      delta[i] = gradient_row(head.d_out + token * task.out_stride, head.out + token * task.out_stride, task.dim,
                              at.dim, d_out + i * at.dim);
      lse[i] = head.lse[token] * kLog2E;
      fill_zero(p + i * at.keys + unsure, whole_vectors(block.keys) - unsure);
      fill_zero(ds + i * at.keys + unsure, whole_vectors(block.keys) - unsure);
    }
    block.across_keys(q, scratch + at.k_columns, [&](int64_t row, int64_t key, FloatVector value) HWY_ATTR {
      auto share = exp2_of_negative(hn::Sub(value, hn::Set(d, lse[row])));
      const int64_t seen = task.keys_before(first + row + 1);
      if (key + lanes() > seen) share = hn::IfThenElseZero(lanes_before(key, seen), share);
      hn::StoreU(share, d, p + row * at.keys + key);
    });
    block.across_keys(d_out, scratch + at.v_columns, [&](int64_t row, int64_t key, FloatVector value) HWY_ATTR {
      const auto share = hn::LoadU(d, p + row * at.keys + key);
      hn::StoreU(hn::Mul(share, hn::Sub(value, hn::Set(d, delta[row]))), d, ds + row * at.keys + key);
    });
    block.over_keys(ds, scratch + at.k, [&](int64_t row, int64_t col, FloatVector value) HWY_ATTR {
      hn::StoreU(value, d, dq + row * at.dim + col);
    });
    block.over_rows(ds, q, scratch + at.dk);
    block.over_rows(p, d_out, scratch + at.dv);
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t offset = (first + i) * task.qkv_stride;
      head_row_backward(back, head.q + offset, rstd[i], first + i, dq + i * at.dim, head.d_q + offset, head.d_gain);
    }
  }
}

void backward_rows(const HeadRows& rows, const float* x, int64_t stride, int64_t tokens, const float* rstd, float* dy,
                   float* dx, float* d_gain) {
  for (int64_t token = 0; token < tokens; ++token) {
    head_row_backward(rows, x + token * stride, rstd[token], token, dy + token * rows.padded, dx + token * stride,
                      d_gain);
  }
}

void attention_backward(const AttentionShape& shape, const AttentionInputs& inputs, const AttentionGradients& gradients,
                        float* scratch, int64_t task_begin, int64_t task_end) {
  const Scratch at(shape, true);
  const float* const qkv = inputs.qkv;
  for (int64_t index = task_begin; index < task_end; ++index) {
    const Task task(shape, inputs, at, index);
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
      const int64_t q = task.q + head * task.dim;
      const int64_t out = task.out + head * task.dim;
      backward_head(task, at,
                    {qkv + q, gradients.out + out, gradients.lse + task.lse + head * task.tokens, gradients.d_out + out,
                     gradients.d_qkv + q, gain_gradient(0)},
                    scratch);
    }
    HeadRows k_back = task.k_rows;
    k_back.factor = kLn2;  // q carried log2(e)
    backward_rows(k_back, qkv + task.k, task.qkv_stride, task.tokens, scratch + at.k_rstd, scratch + at.dk,
                  gradients.d_qkv + task.k, gain_gradient(1));
    backward_rows(task.v_rows, qkv + task.v, task.qkv_stride, task.tokens, scratch + at.v_rstd, scratch + at.dv,
                  gradients.d_qkv + task.v, gain_gradient(2));
  }
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace siamese::kernels {

HWY_EXPORT(attention_forward_scratch);
HWY_EXPORT(attention_backward_scratch);
HWY_EXPORT(attention_forward);
HWY_EXPORT(attention_backward);

int64_t attention_forward_scratch(const AttentionShape& shape) {
  return HWY_DYNAMIC_DISPATCH(attention_forward_scratch)(shape);
}

int64_t attention_backward_scratch(const AttentionShape& shape) {
  return HWY_DYNAMIC_DISPATCH(attention_backward_scratch)(shape);
}

void attention_forward(const AttentionShape& shape, const AttentionInputs& inputs, float* out, float* lse,
                       float* scratch, int64_t task_begin, int64_t task_end) {
  HWY_DYNAMIC_DISPATCH(attention_forward)(shape, inputs, out, lse, scratch, task_begin, task_end);
}

void attention_backward(const AttentionShape& shape, const AttentionInputs& inputs, const AttentionGradients& gradients,
                        float* scratch, int64_t task_begin, int64_t task_end) {
  HWY_DYNAMIC_DISPATCH(attention_backward)(shape, inputs, gradients, scratch, task_begin, task_end);
}

}  // namespace siamese::kernels
#endif  // HWY_ONCE
