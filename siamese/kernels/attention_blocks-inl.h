// What attention works on (the equations stand in siamese/kernels/attention.h), included once per SIMD target:
//   Scratch        where a thread's intermediate rows lie
//   Task           one key/value head of one sample: where its heads lie in the caller's arrays
//   head_columns   k or v of a task, as rows and as columns
//   Block          some query rows of one head, and the three kinds of products they take part in
//
// Powers of two. The scores are kept as s log2(e), so that softmax needs exp2 only: q carries scale log2(e) in the
// scratch, with scale = 1 / sqrt(D). Then p = 2^(s log2(e) - lse log2(e)). Backward computes ds / scale =
// p (dout . v - delta) and puts back what is missing at the end, as the factor of a row:
//   dq = scale sum_j (ds / scale)_j k_j                     factor scale
//   dk = ln(2) sum_i (ds / scale)_i (scale log2(e) q_i)     factor ln(2) = 1 / log2(e)
//
// Pairs. Where the CPU multiplies bfloat16, rows of bfloat16 stay so in the products: q, k, v, dout, and p and ds,
// which are rounded after they were computed in float. A lane then holds two neighbours of the sum: of a row (q and
// dout with the columns of k and v; p with v and ds with k), or of two rows (p and ds with dout and q; k and v as
// rows). Sums, softmax and its statistics are float.
//
// Who owns what: qkv, out, lse and their gradients are the caller's, and Task only says where in them. The scratch is
// the caller's too: one of a task and one of a block for each thread, or a task's for all threads that share it. Rows
// of q, k, v there are padded with zeros to whole vectors; a row of scores or a column of k has room for `keys` floats,
// of which those past the last token are never read as results.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "siamese/kernels/attention.h"
#include "siamese/kernels/attention_rows-inl.h"
#include "siamese/kernels/bfloat16_pairs-inl.h"
#include "siamese/kernels/prefetch_queue-inl.h"
#include "siamese/kernels/tile_product-inl.h"
#include "siamese/kernels/transpose-inl.h"

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
// Keys whose sums are one piece of a shared task, and in whose units a block leaves out those before its window: whole
// tiles of any height, so that tiles lie the same whatever the range.
inline constexpr int64_t kKeyPart = 2 * kBlockUnit;

HWY_INLINE int64_t lanes() { return static_cast<int64_t>(hn::Lanes(Floats())); }
HWY_INLINE int64_t in_vectors(int64_t floats) { return (floats + lanes() - 1) / lanes(); }
HWY_INLINE int64_t whole_vectors(int64_t floats) { return in_vectors(floats) * lanes(); }

// Where everything lies in the scratch, each at its offset in floats. Of a task, read by all its blocks:
//   k_columns  [D, keys]          k as columns                     both passes
//   v          [T, dim]           v                                forward
//   v_columns  [D, keys]          v as columns                     backward, and so on
//   k          [T, dim]           k
//   dk, dv     [T, dim]           added to by every block of every head of the task
//   k_rstd, v_rstd [T]            of the norms' rows
//   few        [blocks, kTransposeRows, dim]   rows on their way to columns
// Of a block, `block` query rows of one head:
//   q          [block, dim]       q scale log2(e)                  both passes
//   p          [block, keys]      scores, then p (in forward before the division by the row's sum)
//   row_a, row_b [block]          forward: the row's sum and max   backward: lse log2(e) and delta
//   ds         [block, keys]      ds / scale                       backward, and so on
//   d_out, dq  [block, dim]
//   q_rstd     [block]
//   ds_two, q_two, d_out_two      ds, q and dout, two rows in one  of pairs only
// Rows of keys are an odd number of cache lines apart, since a power of two would put a column into few sets of the
// cache.
struct Scratch {
  Scratch(const AttentionShape& shape, bool backward) : dim(whole_vectors(shape.head_dim)) {
    const int64_t unit = std::max(kLineFloats, lanes());
    keys = (shape.tokens + unit - 1) / unit * unit;
    if (keys / unit % 2 == 0) keys += unit;
    const int64_t units = std::clamp<int64_t>(kBlockScores / keys / kBlockUnit, 1, kBlockUnits);
    block = std::max<int64_t>(1, std::min(units * kBlockUnit, shape.tokens));
    blocks = (shape.tokens + block - 1) / block;
    const auto take = [unit](int64_t& size, int64_t floats) {
      const int64_t offset = size;
      size += (floats + unit - 1) / unit * unit;
      return offset;
    };
    k_columns = take(task_size, shape.head_dim * keys);
    few = take(task_size, blocks * kTransposeRows * dim);
    q = take(block_size, block * dim);
    p = take(block_size, block * keys);
    row_a = take(block_size, block);
    row_b = take(block_size, block);
    if (!backward) {
      v = take(task_size, shape.tokens * dim);
      return;
    }
    k = take(task_size, shape.tokens * dim);
    v_columns = take(task_size, shape.head_dim * keys);
    dk = take(task_size, shape.tokens * dim);
    dv = take(task_size, shape.tokens * dim);
    k_rstd = take(task_size, shape.tokens);
    v_rstd = take(task_size, shape.tokens);
    ds = take(block_size, block * keys);
    d_out = take(block_size, block * dim);
    dq = take(block_size, block * dim);
    q_rstd = take(block_size, block);
    ds_two = take(block_size, (block + 1) / 2 * keys);
    q_two = take(block_size, (block + 1) / 2 * dim);
    d_out_two = take(block_size, (block + 1) / 2 * dim);
  }

  int64_t dim;         // of a row of q, k, v
  int64_t keys = 0;    // of a row of scores, or of the columns of k and v
  int64_t block = 0;   // query rows worked on at once
  int64_t blocks = 0;  // of a head
  int64_t task_size = 0, block_size = 0;
  int64_t k_columns, few, q, p, row_a, row_b;                             // NOLINT
  int64_t v = 0, k = 0, v_columns = 0, dk = 0, dv = 0;                    // NOLINT
  int64_t k_rstd = 0, v_rstd = 0, ds = 0, d_out = 0, dq = 0, q_rstd = 0;  // NOLINT
  int64_t ds_two = 0, q_two = 0, d_out_two = 0;                           // NOLINT
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
        causal(s.causal),
        window(s.causal && s.window > 0 ? s.window : s.tokens) {
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
  // The first key that a query row sees.
  int64_t first_key(int64_t row) const { return causal ? std::max<int64_t>(0, row + 1 - window) : 0; }

  int64_t tokens, dim, group;
  int64_t qkv_stride, out_stride;
  bool causal;
  int64_t window;
  int64_t q, k, v, out, lse;  // offsets of the first head's first row
  float scale;
  HeadRows q_rows, k_rows, v_rows;
};

HWY_INLINE void fill_zero(float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = 0;
}

// `count` rows of k (or v) from token `first` on as columns; what lies beyond the last token is computed with, masked
// and never read. Kept as rows too with kKeep, else in `few`. first: whole kTransposeRows.
template <bool kKeep, class T>
void head_columns(const HeadRows& rows, const T* x, int64_t stride, int64_t first, int64_t count, float* rows_out,
                  float* few, float* rstd, float* columns, int64_t keys) {
  for (int64_t token = first; token < first + count; token += kTransposeRows) {
    const int64_t together = std::min(kTransposeRows, first + count - token);
    float* const out = kKeep ? rows_out + token * rows.padded : few;
    for (int64_t i = 0; i < together; ++i) {
      const float row_rstd = head_row(rows, x + (token + i) * stride, token + i, out + i * rows.padded);
      if (rstd != nullptr) rstd[token + i] = row_rstd;
    }
    transpose(out, rows.padded, together, rows.dim, columns + token, keys);
  }
}

#if SIAMESE_KERNELS_BFLOAT16_PAIRS
// The same in pairs: columns of neighbours in a row (null: not wanted), and two rows in one (null: not wanted).
template <class T>
void head_columns_of_pairs(const HeadRows& rows, const T* x, int64_t stride, int64_t first, int64_t count, float* few,
                           float* two, float* rstd, float* columns, int64_t keys) {
  const int64_t vectors = rows.padded / lanes();
  for (int64_t token = first; token < first + count; token += kTransposeRows) {
    const int64_t together = std::min(kTransposeRows, first + count - token);
    for (int64_t i = 0; i < together; ++i) {
      const float row_rstd = head_row(rows, x + (token + i) * stride, token + i, few + i * rows.padded);
      if (rstd != nullptr) rstd[token + i] = row_rstd;
    }
    for (int64_t i = 0; two != nullptr && i < together; i += 2) {
      const float* const second = i + 1 < together ? few + (i + 1) * rows.padded : nullptr;
      pack_rows_of_two(few + i * rows.padded, second, vectors, two + (token + i) / 2 * rows.padded);
    }
    if (columns == nullptr) continue;
    for (int64_t i = 0; i < together; ++i) pack_neighbours(few + i * rows.padded, vectors);
    transpose(few, rows.padded, together, (rows.dim + 1) / 2, columns + token, keys);
  }
}

// Between the last token and the end of its vector, where a lane may reach.
HWY_INLINE void zero_past_tokens(const Task& task, float* columns, int64_t keys) {
  for (int64_t i = 0; i < (task.dim + 1) / 2; ++i) {
    fill_zero(columns + i * keys + task.tokens, whole_vectors(task.tokens) - task.tokens);
  }
}
#endif

// The query rows [first, first + rows) of one head and their products. Each product skips what causality makes zero, in
// whole tiles: a tile on the diagonal computes across it, and what it finds there has to be zero or masked. So with
// what lies before the window of every row, in whole parts: the keys of a block begin at `begin`. (Not so of pairs,
// where two keys lie in one lane: there all are computed, and masked.)
template <bool kPairs>
struct BlockOf {
#if SIAMESE_KERNELS_BFLOAT16_PAIRS
  using Multiply = std::conditional_t<kPairs, MultiplyAddPairs, MultiplyAdd>;
#else
  using Multiply = MultiplyAdd;
#endif
  static constexpr int64_t kTerms = kPairs ? 2 : 1;  // of a sum in a lane
  static HWY_INLINE int64_t steps(int64_t terms) { return (terms + kTerms - 1) / kTerms; }

  const Task& task;
  const Scratch& at;
  int64_t first, rows;
  int64_t begin;  // the first key that is computed with
  int64_t keys;   // seen by any of its rows

  BlockOf(const Task& its_task, const Scratch& scratch, int64_t first_row)
      : task(its_task),
        at(scratch),
        first(first_row),
        rows(std::min(at.block, task.tokens - first)),
        begin(kPairs ? 0 : task.first_key(first) / kKeyPart * kKeyPart),
        keys(task.keys_before(first + rows)) {}

  // How many columns of row i of p or ds a product may read; those past the diagonal must be zero.
  int64_t columns_read(int64_t i) const {
    const int64_t row = kPairs ? (i | 1) + 1 : i;  // both rows of a lane, and a key more than one of them sees
    return whole_vectors(std::min(keys, task.keys_before(first + row + kTallestTile)));
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
    return (rows + kHeight - 1) / kHeight * ((in_vectors(keys - begin) + kTileVectors - 1) / kTileVectors);
  }

  // [rows, begin ... keys] = q k^T, or with d_out and v for them: from rows and columns, a sum over D. store() is told
  // the key from `begin` on.
  template <class Store>
  HWY_INLINE void across_keys(const float* q, const float* columns, PrefetchQueue& queue, const Store& store) const {
    tile_product<Multiply>(
        rows, in_vectors(keys - begin), BroadcastMatrix{q, at.dim, 1}, RowMatrix{columns + begin, at.keys},
        [&](int64_t row, int64_t count) HWY_ATTR {
          queue.prefetch_part();
          return TileRange{0, steps(task.dim), in_vectors(task.keys_before(first + row + count) - begin)};
        },
        store);
  }
  // [rows, D] = p v, or ds k: a sum over the keys.
  template <class Store>
  HWY_INLINE void over_keys(const float* p, const float* k, const Store& store) const {
    tile_product<Multiply>(
        rows, at.dim / lanes(), BroadcastMatrix{p + begin, at.keys, 1}, RowMatrix{k + begin * at.dim, at.dim},
        [&](int64_t row, int64_t count) HWY_ATTR {
          return TileRange{0, steps(task.keys_before(first + row + count) - begin), at.dim / lanes()};
        },
        store);
  }
  // sum[keys, D] += ds^T q, or p^T d_out: a sum over the block's rows, for the keys from `from` (whole parts) to `to`
  // that it sees.
  HWY_INLINE void over_rows(const float* p, const float* q, float* sum, int64_t from, int64_t to) const {
    const int64_t least = std::max(from, begin);
    const int64_t count = std::min(to, keys) - least;
    if (count <= 0) return;
    tile_product<Multiply>(
        count, at.dim / lanes(), BroadcastMatrix{p + least, 1, at.keys}, RowMatrix{q, at.dim},
        [&](int64_t key, int64_t) HWY_ATTR {
          return TileRange{task.causal ? std::max<int64_t>(0, least + key - first) / kTerms : 0, steps(rows),
                           at.dim / lanes()};
        },
        [&](int64_t key, int64_t col, FloatVector value) HWY_ATTR {
          float* const at_key = sum + (least + key) * at.dim + col;
          hn::StoreU(hn::Add(hn::LoadU(Floats(), at_key), value), Floats(), at_key);
        });
  }
};

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
