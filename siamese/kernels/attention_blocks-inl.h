// What attention works on (the equations stand in siamese/kernels/attention.h), included once per SIMD target:
//   Scratch        where a thread's intermediate rows lie
//   Task           one key/value head of one sample: where its heads lie in the caller's arrays
//   head_columns   k or v of a task, as rows and as columns
//   PrefetchQueue  rows that will be needed soon
//   Block          some query rows of one head, and the three kinds of products they take part in
//
// Powers of two. The scores are kept as s log2(e), so that softmax needs exp2 only: q carries scale log2(e) in the
// scratch, with scale = 1 / sqrt(D). Then p = 2^(s log2(e) - lse log2(e)). Backward computes ds / scale =
// p (dout . v - delta) and puts back what is missing at the end, as the factor of a row:
//   dq = scale sum_j (ds / scale)_j k_j                     factor scale
//   dk = ln(2) sum_i (ds / scale)_i (scale log2(e) q_i)     factor ln(2) = 1 / log2(e)
//
// Who owns what: qkv, out, lse and their gradients are the caller's, and Task only says where in them. The scratch is
// the caller's too, one for each thread; nothing in it outlives a task. Rows of q, k, v there are padded with zeros to
// whole vectors; a row of scores or a column of k has room for `keys` floats, of which those past the last token are
// never read as results.
#include <algorithm>
#include <cmath>

#include "hwy/cache_control.h"

#include "siamese/kernels/attention.h"
#include "siamese/kernels/attention_rows-inl.h"
#include "siamese/kernels/tile_product-inl.h"

#if defined(SIAMESE_KERNELS_ATTENTION_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SIAMESE_KERNELS_ATTENTION_BLOCKS_INL_H_
#undef SIAMESE_KERNELS_ATTENTION_BLOCKS_INL_H_
#else
#define SIAMESE_KERNELS_ATTENTION_BLOCKS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

// Query rows that are worked on at once: whole tiles of any height, and the more the better, but their scores against
// all keys (two floats each in backward) shall stay in a cache of 1 MB beside k and v.
inline constexpr int64_t kBlockUnit = 24;
inline constexpr int64_t kBlockUnits = 4;
inline constexpr int64_t kBlockScores = 52 * 1024;
inline constexpr int64_t kTransposeRows = 4;

HWY_INLINE int64_t lanes() { return static_cast<int64_t>(hn::Lanes(Floats())); }
HWY_INLINE int64_t in_vectors(int64_t floats) { return (floats + lanes() - 1) / lanes(); }
HWY_INLINE int64_t whole_vectors(int64_t floats) { return in_vectors(floats) * lanes(); }

// Where everything lies in the scratch, each at its offset in floats. `block` query rows of one head at a time:
//   k_columns  [D, keys]          k as columns                     both passes
//   v          [T, dim]           v; in backward a few rows        (only its columns are needed there)
//   k          [T, dim]           k; in forward a few rows         (likewise)
//   q          [block, dim]       q scale log2(e)
//   p          [block, keys]      scores, then p (in forward before the division by the row's sum)
//   row_a, row_b [block]          forward: the row's sum and max   backward: lse log2(e) and delta
// backward only:
//   v_columns  [D, keys]          v as columns
//   ds         [block, keys]      ds / scale
//   d_out, dq  [block, dim]
//   dk, dv     [T, dim]           added to by every block of every head of the task
//   q_rstd, k_rstd, v_rstd        of the norms' rows
// Rows of keys are an odd number of cache lines apart, since a power of two would put a column into few sets of the
// cache.
struct Scratch {
  Scratch(const AttentionShape& shape, bool backward) : dim(whole_vectors(shape.head_dim)) {
    const int64_t unit = std::max(kLineFloats, lanes());
    keys = (shape.tokens + unit - 1) / unit * unit;
    if (keys / unit % 2 == 0) keys += unit;
    const int64_t units = std::clamp<int64_t>(kBlockScores / keys / kBlockUnit, 1, kBlockUnits);
    block = std::min(units * kBlockUnit, shape.tokens);
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
    row_b = take(block);
    if (!backward) return;
    v_columns = take(shape.head_dim * keys);
    ds = take(block * keys);
    d_out = take(block * dim);
    dq = take(block * dim);
    dk = take(shape.tokens * dim);
    dv = take(shape.tokens * dim);
    q_rstd = take(block);
    k_rstd = take(shape.tokens);
    v_rstd = take(shape.tokens);
  }

  int64_t dim;        // of a row of q, k, v
  int64_t keys = 0;   // of a row of scores, or of the columns of k and v
  int64_t block = 0;  // query rows worked on at once
  int64_t size = 0;
  int64_t k_columns, v, k, q, p, row_a, row_b;                       // NOLINT
  int64_t v_columns = 0, ds = 0, d_out = 0, dq = 0, dk = 0, dv = 0;  // NOLINT
  int64_t q_rstd = 0, k_rstd = 0, v_rstd = 0;                        // NOLINT
};

// One task: where its heads lie, and how their rows become q, k and v.
struct Task {
  template <class T>
  Task(const AttentionShape& s, const AttentionInputsOf<T>& inputs, const Scratch& scratch, int64_t task)
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

// The rows of k (or v) as columns; what lies beyond the last token is computed with, masked and never read. Kept as
// rows too with kKeep, else `rows_out` holds a few.
template <bool kKeep, class T>
void head_columns(const HeadRows& rows, const T* x, int64_t stride, int64_t tokens, float* rows_out, float* rstd,
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
}

// Rows that will be needed soon. A head's rows lie far apart, so that the hardware does not foresee them, and
// prefetching many at once is waiting for them: they are prefetched a few at a time, between the tiles of a product.
class PrefetchQueue {
 public:
  explicit PrefetchQueue(int64_t dim) : dim_(dim) {}

  template <class T>
  void add(const T* rows, int64_t stride, int64_t count) {
    if (rows == nullptr || count <= 0) return;
    const auto size = static_cast<int64_t>(sizeof(T));
    lists_[lists_used_++] = {reinterpret_cast<const char*>(rows), stride * size, dim_ * size, count};
    waiting_ += count;
  }
  // From now on in `calls` equal parts.
  void spread(int64_t calls) { part_ = (waiting_ + calls - 1) / calls; }

  HWY_INLINE void prefetch_part() {
    for (int64_t i = 0; i < part_ && waiting_ > 0; ++i, --waiting_) {
      Rows& rows = lists_[lists_used_ - 1];
      for (int64_t j = 0; j < rows.length; j += kLineBytes) hwy::Prefetch(rows.at + j);
      rows.at += rows.stride;
      if (--rows.count == 0) --lists_used_;
    }
  }

 private:
  static constexpr int64_t kLineBytes = kLineFloats * static_cast<int64_t>(sizeof(float));
  struct Rows {
    const char* at;
    int64_t stride, length;  // in bytes
    int64_t count;
  };
  int64_t dim_;
  int64_t part_ = 0;
  int64_t waiting_ = 0;
  int lists_used_ = 0;
  Rows lists_[8];
};

// The query rows [first, first + rows) of one head and their products. Each product skips what causality makes zero, in
// whole tiles: a tile on the diagonal computes across it, and what it finds there has to be zero or masked.
struct Block {
  const Task& task;
  const Scratch& at;
  int64_t first, rows;
  int64_t keys;  // seen by any of its rows

  Block(const Task& its_task, const Scratch& scratch, int64_t first_row)
      : task(its_task),
        at(scratch),
        first(first_row),
        rows(std::min(at.block, task.tokens - first)),
        keys(task.keys_before(first + rows)) {}

  // How many columns of row i of p or ds a product may read; those past the diagonal must be zero.
  int64_t columns_read(int64_t i) const {
    return whole_vectors(std::min(keys, task.keys_before(first + i + kTallestTile)));
  }
  bool last() const { return first + rows == task.tokens; }

  // Queues the rows of the next block; after the last one those of the head that follows.
  template <class T>
  void queue_next(const T* head, const T* following, int64_t stride, PrefetchQueue& queue) const {
    if (last()) return queue.add(following, stride, at.block);
    queue.add(head + (first + rows) * stride, stride, std::min(at.block, task.tokens - first - rows));
  }
  int64_t tiles_across_keys() const {
    constexpr int64_t kHeight = kTileRows<kTileVectors>;
    return (rows + kHeight - 1) / kHeight * ((in_vectors(keys) + kTileVectors - 1) / kTileVectors);
  }

  // [rows, keys] = q k^T, or with d_out and v for them: from rows and columns, a sum over D.
  template <class Store>
  HWY_INLINE void across_keys(const float* q, const float* columns, PrefetchQueue& queue, const Store& store) const {
    tile_product(
        rows, in_vectors(keys), BroadcastMatrix{q, at.dim, 1}, RowMatrix{columns, at.keys},
        [&](int64_t row, int64_t count) HWY_ATTR {
          queue.prefetch_part();
          return TileRange{0, task.dim, in_vectors(task.keys_before(first + row + count))};
        },
        store);
  }
  // [rows, D] = p v, or ds k: a sum over the keys.
  template <class Store>
  HWY_INLINE void over_keys(const float* p, const float* k, const Store& store) const {
    tile_product(
        rows, at.dim / lanes(), BroadcastMatrix{p, at.keys, 1}, RowMatrix{k, at.dim},
        [&](int64_t row, int64_t count) HWY_ATTR {
          return TileRange{0, task.keys_before(first + row + count), at.dim / lanes()};
        },
        store);
  }
  // sum[keys, D] += ds^T q, or p^T d_out: a sum over the block's rows.
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

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
