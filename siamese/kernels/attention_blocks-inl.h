// What attention works on, included once per SIMD target: where things lie in the scratch, one task, k and v as
// columns, the products of a block of query rows.
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

// Where everything lies in the scratch; a float offset each. Rows of keys are an odd number of cache lines apart, since
// a power of two would put a column into few sets of the cache.
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

// The rows of k (or v) as columns; what lies beyond the last token is computed with, masked and never read. Kept as
// rows too with kKeep, else `rows_out` holds a few.
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
}

// Rows that will be needed soon. A head's rows lie far apart, so that no hardware foresees them, and asking for many at
// once is waiting for them: they are asked for a few at a time, between the tiles of a product.
class Ahead {
 public:
  explicit Ahead(int64_t dim) : dim_(dim) {}

  void add(const float* rows, int64_t stride, int64_t count) {
    if (rows == nullptr || count <= 0) return;
    lists_[lists_used_++] = {rows, stride, count};
    waiting_ += count;
  }
  // From now on in `calls` equal parts.
  void spread(int64_t calls) { part_ = (waiting_ + calls - 1) / calls; }

  HWY_INLINE void some() {
    for (int64_t i = 0; i < part_ && waiting_ > 0; ++i, --waiting_) {
      Rows& rows = lists_[lists_used_ - 1];
      for (int64_t j = 0; j < dim_; j += kLineFloats) hwy::Prefetch(rows.at + j);
      rows.at += rows.stride;
      if (--rows.count == 0) --lists_used_;
    }
  }

 private:
  struct Rows {
    const float* at;
    int64_t stride;
    int64_t count;
  };
  int64_t dim_;
  int64_t part_ = 0;
  int64_t waiting_ = 0;
  int lists_used_ = 0;
  Rows lists_[8];
};

// The products of a block of query rows [first, first + rows) of one head, with the causal part of each only.
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

  // How many columns of row i of p or ds a product may read: a tile on the diagonal reads across it, and finds zeros.
  int64_t columns_read(int64_t i) const {
    return whole_vectors(std::min(keys, task.keys_before(first + i + kTallestTile)));
  }
  bool last() const { return first + rows == task.tokens; }

  // The rows of the next block; `following` are those of the next head.
  void ask_for_next(const float* head, const float* following, int64_t stride, Ahead& ahead) const {
    if (last()) return ahead.add(following, stride, at.block);
    ahead.add(head + (first + rows) * stride, stride, std::min(at.block, task.tokens - first - rows));
  }
  int64_t tiles_across_keys() const {
    constexpr int64_t kHeight = kTileRows<kTileVectors>;
    return (rows + kHeight - 1) / kHeight * ((in_vectors(keys) + kTileVectors - 1) / kTileVectors);
  }

  // scores-like: rows x keys from q-like rows and k-like columns
  template <class Store>
  HWY_INLINE void across_keys(const float* q, const float* columns, Ahead& ahead, const Store& store) const {
    tile_product(
        rows, in_vectors(keys), BroadcastMatrix{q, at.dim, 1}, RowMatrix{columns, at.keys},
        [&](int64_t row, int64_t count) HWY_ATTR {
          ahead.some();
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

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
