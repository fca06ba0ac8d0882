#include "siamese/kernels/outer_products.h"

#include <algorithm>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "siamese/kernels/outer_products.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "siamese/kernels/product_operands-inl.h"
#include "siamese/kernels/simd.h"
#include "siamese/kernels/tile_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

// dW += dy^T x, from copies of dy and x that lie in the order in which they are read:
//
//   for each block of rows m of dy and x and of columns k of x      Blocks; x copied into `panels`
//     for each slab of columns n of dy                              Slab; dy copied into `slab`
//       for each tile, kOutputs of these n by a panel of these k    add_tile; summed over these m in registers
// A panel is two vectors of columns of x, row after row; a tile's columns of dy lie likewise. While the tiles of a slab
// are computed, the next slab (which may belong to the next block) is copied part by part. What is copied are floats,
// or lanes of two bfloat16 from two rows (Pairs), which one instruction multiplies and adds: a step of a tile then is
// two rows.
//
// Who owns what: dy, x, dw and the scratch are the caller's. The scratch is [panels of a block | slab | slab], the two
// slabs in turns. Sizes: a tile's columns of dy (256 rows of 12 floats) stay in the first cache while the panels come
// past from the second, of whose 1 MB a block of panels takes 768 KB, the rest is for the slabs.
inline constexpr int kPanelVectors = 2;
inline constexpr int kOutputs = kTileRows<kPanelVectors>;
inline constexpr int64_t kMostBlockRows = 256;
inline constexpr int64_t kBlockFloats = 192 * 1024;
inline constexpr int64_t kSlabOutputs = 8 * kOutputs;

// The largest equal blocks of x. Their rows depend on nothing but the number of rows, since they set the order of sums.
// Rows are counted in steps.
struct Blocks {
  Blocks(int64_t all_rows, int64_t in)
      : panel(kPanelVectors * static_cast<int64_t>(hn::Lanes(Floats()))),
        rows(parts_of(all_rows, parts_of(all_rows, kMostBlockRows))) {
    const int64_t panels = parts_of(in, panel);
    const int64_t most_panels = std::max<int64_t>(1, kBlockFloats / (rows * panel));
    columns = parts_of(panels, parts_of(panels, most_panels)) * panel;
  }

  int64_t panel;    // columns of one
  int64_t rows;     // of a block, at most
  int64_t columns;  // of a block, at most; whole panels
};

int64_t outer_products_scratch(int64_t rows, int64_t /*out*/, int64_t in) {
  if (rows <= 0 || in <= 0) return 0;
  const auto floats = [&](int64_t steps) {
    const Blocks blocks(steps, in);
    return blocks.rows * (blocks.columns + 2 * kSlabOutputs);
  };
  return std::max(floats(rows), floats(parts_of(rows, 2)));  // of single rows and of pairs
}

// Columns of dy as tiles of kOutputs columns (the last may be narrower), each of its rows next to one another. They
// are copied in `calls` parts: the rows of dy lie far apart, so that the hardware does not foresee them, and each part
// prefetches the next.
template <class Kind>
class Slab {
  using Input = typename Kind::Input;

 public:
  Slab() = default;  // nothing to copy
  Slab(const Input* dy, int64_t stride, int64_t rows, int64_t outputs, int64_t calls, float* to)
      : dy_(dy),
        stride_(stride),
        rows_(rows),
        steps_(steps_of<Kind>(rows)),
        outputs_(outputs),
        part_(parts_of(steps_, calls)),
        to_(to) {
    prefetch_rows(0, part_);
  }

  HWY_INLINE void pack_part() {
    const int64_t end = std::min(steps_, next_ + part_);
    prefetch_rows(end, std::min(steps_, end + part_));
    for (; next_ < end; ++next_) pack(next_);
  }
  HWY_INLINE void pack_rest() {
    for (; next_ < steps_; ++next_) pack(next_);
  }

 private:
  HWY_INLINE void prefetch_rows(int64_t begin, int64_t end) const {
    constexpr int64_t kLine = kLineFloats * static_cast<int64_t>(sizeof(float) / sizeof(Input));
    for (int64_t row = begin * Kind::kRows; row < std::min(rows_, end * Kind::kRows); ++row) {
      const Input* const from = dy_ + row * stride_;
      for (int64_t i = 0; i < outputs_; i += kLine) __builtin_prefetch(from + i, 0, 3);
      __builtin_prefetch(from + outputs_ - 1, 0, 3);
    }
  }
  HWY_INLINE void pack(int64_t step) const {
    const Input* const first = dy_ + step * Kind::kRows * stride_;
    const Input* const second = second_row<Kind>(first, stride_, step, rows_);
    int64_t output = 0;
    for (; output + kOutputs <= outputs_; output += kOutputs) {
      float* const tile = to_ + output * steps_ + step * kOutputs;
      for (int64_t i = 0; i < kOutputs; ++i) tile[i] = Kind::load(first + output + i, row_or_null(second, output + i));
    }
    float* const tile = to_ + output * steps_ + step * (outputs_ - output);
    for (int64_t i = 0; output + i < outputs_; ++i) {
      tile[i] = Kind::load(first + output + i, row_or_null(second, output + i));
    }
  }

  const Input* dy_ = nullptr;
  int64_t stride_ = 0, rows_ = 0, steps_ = 0, outputs_ = 0, part_ = 0;
  float* to_ = nullptr;
  int64_t next_ = 0;
};

// dw[0..kRows)[0..columns) += what `steps` of a tile of dy and of a panel of x give; columns: at most a panel.
template <int kRows, class Multiply>
HWY_INLINE void add_tile(const float* HWY_RESTRICT dy, int64_t dy_step, const float* HWY_RESTRICT x, int64_t steps,
                         float* HWY_RESTRICT dw, int64_t in, int64_t columns) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t panel = kPanelVectors * lanes;
  // Prefetched now, there when the sums are.
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kPanelVectors; ++j) __builtin_prefetch(dw + i * in + j * lanes, 1, 3);
  }
  const auto add = [&](auto access, int64_t row, int64_t column, FloatVector sum) HWY_ATTR {
    float* const at = dw + row * in + column;
    access.store(hn::Add(access.load(d, at), sum), d, at);
  };
  if (columns >= panel) {
    product_tile<kRows, kPanelVectors, Multiply>(dy, 1, dy_step, x, panel, steps, 0, 0,
                                                 [&](int64_t row, int64_t column, FloatVector sum)
                                                     HWY_ATTR { add(WholeVector(), row, column, sum); });
  } else {
    product_tile<kRows, kPanelVectors, Multiply>(
        dy, 1, dy_step, x, panel, steps, 0, 0, [&](int64_t row, int64_t column, FloatVector sum) HWY_ATTR {
          if (column + lanes <= columns) {
            add(WholeVector(), row, column, sum);
          } else if (column < columns) {
            add(PartVector{static_cast<size_t>(columns - column)}, row, column, sum);
          }
        });
  }
}

// Outputs left over go in tiles of 4, 2 and 1.
template <int kRows, class Multiply>
HWY_INLINE void add_part_tile(int64_t outputs, const float* dy, int64_t dy_step, const float* x, int64_t steps,
                              float* dw, int64_t in, int64_t columns) {
  while (outputs >= kRows) {
    add_tile<kRows, Multiply>(dy, dy_step, x, steps, dw, in, columns);
    outputs -= kRows;
    dy += kRows;
    dw += kRows * in;
  }
  if constexpr (kRows > 1) add_part_tile<kRows / 2, Multiply>(outputs, dy, dy_step, x, steps, dw, in, columns);
}

template <class Kind>
class OuterProducts {
  using Input = typename Kind::Input;

 public:
  HWY_INLINE OuterProducts(const Input* dy, const Input* x, float* dw, int64_t rows, int64_t out, int64_t in,
                           int64_t out_begin, int64_t out_end, float* scratch)
      : dy_(dy),
        x_(x),
        dw_(dw),
        rows_(rows),
        out_(out),
        in_(in),
        out_begin_(out_begin),
        out_end_(out_end),
        blocks_(steps_of<Kind>(rows), in),
        panels_(scratch),
        slab_(panels_ + blocks_.rows * blocks_.columns),
        next_slab_(slab_ + blocks_.rows * kSlabOutputs) {}

  HWY_INLINE void run() {
    Place at{0, 0, out_begin_};
    slab_at(at, 1, slab_).pack_rest();
    for (;;) {
      if (at.output == out_begin_) {
        pack_panels<Kind>(x_ + at.row * in_ + at.column, in_, block_rows(at), block_columns(at), blocks_.panel,
                          panels_);
      }
      Place next = at;
      const bool more = advance(next);
      Slab<Kind> next_slab;
      if (more) next_slab = slab_at(next, tiles(at), next_slab_);
      add_slab(at, next_slab);
      if (!more) return;
      next_slab.pack_rest();
      std::swap(slab_, next_slab_);
      at = next;
    }
  }

 private:
  // Where the loops over blocks and slabs stand: the first row and column of a block of x, the first output of a slab.
  struct Place {
    int64_t row, column, output;
  };

  HWY_INLINE bool advance(Place& at) const {
    at.output += kSlabOutputs;
    if (at.output < out_end_) return true;
    at.output = out_begin_;
    at.column += blocks_.columns;
    if (at.column < in_) return true;
    at.column = 0;
    at.row += blocks_.rows * Kind::kRows;
    return at.row < rows_;
  }

  HWY_INLINE int64_t block_rows(const Place& at) const { return std::min(blocks_.rows * Kind::kRows, rows_ - at.row); }
  HWY_INLINE int64_t block_columns(const Place& at) const { return std::min(blocks_.columns, in_ - at.column); }
  HWY_INLINE int64_t slab_outputs(const Place& at) const { return std::min(kSlabOutputs, out_end_ - at.output); }
  HWY_INLINE int64_t tiles(const Place& at) const {
    return parts_of(slab_outputs(at), kOutputs) * parts_of(block_columns(at), blocks_.panel);
  }

  HWY_INLINE Slab<Kind> slab_at(const Place& at, int64_t calls, float* to) const {
    return Slab<Kind>(dy_ + at.row * out_ + at.output, out_, block_rows(at), slab_outputs(at), calls, to);
  }

  // The tiles of a slab with the block's panels; after each, a part of the next slab.
  HWY_INLINE void add_slab(const Place& at, Slab<Kind>& next_slab) const {
    using Multiply = typename Kind::Multiply;
    const int64_t steps = steps_of<Kind>(block_rows(at));
    const int64_t columns = block_columns(at);
    const int64_t all_outputs = slab_outputs(at);
    for (int64_t output = 0; output < all_outputs; output += kOutputs) {
      const int64_t outputs = std::min<int64_t>(kOutputs, all_outputs - output);
      const float* const tile_dy = slab_ + output * steps;
      for (int64_t i = 0; i < columns; i += blocks_.panel) {
        float* const tile_dw = dw_ + (at.output + output) * in_ + at.column + i;
        const float* const panel = panels_ + i * steps;
        if (outputs == kOutputs) {
          add_tile<kOutputs, Multiply>(tile_dy, kOutputs, panel, steps, tile_dw, in_, columns - i);
        } else {
          add_part_tile<4, Multiply>(outputs, tile_dy, outputs, panel, steps, tile_dw, in_, columns - i);
        }
        next_slab.pack_part();
      }
    }
  }

  const Input* dy_;
  const Input* x_;
  float* dw_;
  int64_t rows_, out_, in_, out_begin_, out_end_;
  Blocks blocks_;
  float* panels_;
  float* slab_;
  float* next_slab_;
};

void add_outer_products_of_floats(const float* dy, const float* x, float* dw, int64_t rows, int64_t out, int64_t in,
                                  int64_t out_begin, int64_t out_end, float* scratch) {
  OuterProducts<Singles>(dy, x, dw, rows, out, in, out_begin, out_end, scratch).run();
}

void add_outer_products_of_bfloat16(const Bfloat16* dy, const Bfloat16* x, float* dw, int64_t rows, int64_t out,
                                    int64_t in, int64_t out_begin, int64_t out_end, float* scratch, bool pairs) {
#if SIAMESE_KERNELS_BFLOAT16_PAIRS
  if (pairs) return OuterProducts<Pairs>(dy, x, dw, rows, out, in, out_begin, out_end, scratch).run();
#endif
  (void)pairs;
  OuterProducts<Widened>(dy, x, dw, rows, out, in, out_begin, out_end, scratch).run();
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace siamese::kernels {

HWY_EXPORT(outer_products_scratch);
HWY_EXPORT(add_outer_products_of_floats);
HWY_EXPORT(add_outer_products_of_bfloat16);

int64_t outer_products_scratch(int64_t rows, int64_t out, int64_t in) {
  return HWY_DYNAMIC_DISPATCH(outer_products_scratch)(rows, out, in);
}

void add_outer_products(const float* dy, const float* x, float* dw, int64_t rows, int64_t out, int64_t in,
                        int64_t out_begin, int64_t out_end, float* scratch) {
  if (rows <= 0 || in <= 0 || out_begin >= out_end) return;
  HWY_DYNAMIC_DISPATCH(add_outer_products_of_floats)(dy, x, dw, rows, out, in, out_begin, out_end, scratch);
}

void add_outer_products(const Bfloat16* dy, const Bfloat16* x, float* dw, int64_t rows, int64_t out, int64_t in,
                        int64_t out_begin, int64_t out_end, float* scratch) {
  if (rows <= 0 || in <= 0 || out_begin >= out_end) return;
  HWY_DYNAMIC_DISPATCH(add_outer_products_of_bfloat16)
  (dy, x, dw, rows, out, in, out_begin, out_end, scratch, has_bfloat16_products());
}

}  // namespace siamese::kernels
#endif  // HWY_ONCE
