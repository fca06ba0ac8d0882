#include "siamese/kernels/expert_products.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "siamese/kernels/expert_products.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "siamese/kernels/prefetch_queue-inl.h"
#include "siamese/kernels/product_operands-inl.h"
#include "siamese/kernels/simd.h"
#include "siamese/kernels/tile_product-inl.h"
#include "siamese/kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {
namespace expert_products {

// Both products are C(i, j) = sum over k of A(i, k) B(k, j) in tiles of kTile rows of A by a panel of B:
//   times_transposed   A = w, whose rows come past one tile after the other; B = x^T, packed once; C = y^T
//   times              A = y, B = w, of which one block at a time is packed; C = x
// for blocks of at most kMostSteps steps of the sum. A's rows of a tile and block (12 KB) are copied to lie next to one
// another and stay in the first cache while the panels come past from the second. What is read next of w is fetched
// meanwhile. C is summed up in the scratch, and rounded or transposed as it leaves.
inline constexpr int kPanelVectors = 2;
inline constexpr int kTile = kTileRows<kPanelVectors>;
inline constexpr int64_t kMostSteps = 256;
inline constexpr int64_t kRowLanes = kMostSteps + 16;  // apart: known here, and not all in one set of a cache
inline constexpr int64_t kSlab = 4 * kTile;            // rows of w whose results are transposed at once
inline constexpr int64_t kMostColumns = 256;           // of w that are packed at once

HWY_INLINE int64_t lanes() { return static_cast<int64_t>(hn::Lanes(Floats())); }

// A few rows of x do not fill a vector: the last panel may be one vector, or half of one where that is half the work.
using HalfVector = hn::CappedTag<float, 8>;
HWY_INLINE int64_t half_lanes() { return static_cast<int64_t>(hn::Lanes(HalfVector())); }
HWY_INLINE int64_t padded(int64_t size, int64_t unit) { return parts_of(size, unit) * unit; }

// The width of the panel at `column` of `columns`.
HWY_INLINE int64_t panel_width(int64_t column, int64_t columns) {
  const int64_t left = padded(columns - column, half_lanes());
  if (left >= kPanelVectors * lanes()) return kPanelVectors * lanes();
  return left >= lanes() ? lanes() : left;
}

// The steps of a sum in equal blocks.
struct StepBlocks {
  explicit StepBlocks(int64_t all_steps) : all(all_steps), most(parts_of(all, parts_of(all, kMostSteps))) {}
  int64_t all, most;
};

HWY_INLINE int64_t tile_height(int64_t rows) { return std::min<int64_t>(kTile, padded(rows, kTile / 3)); }

// c[0..kRows)[0..width) = or += a tile.
template <int kRows, int kVectors, class Multiply, class D>
HWY_INLINE void add_tile(const float* a, const float* panel, int64_t steps, bool first, float* c, int64_t c_stride,
                         PrefetchQueue& queue) {
  const D d;
  const auto at = [&](int64_t row, int64_t column) HWY_ATTR { return c + row * c_stride + column; };
  const auto width = kVectors * static_cast<int64_t>(hn::Lanes(d));
  // Few at a time: a burst of prefetches would wait for memory.
  const auto fetch = [&](int64_t step) HWY_ATTR {
    if (step % 4 == 0) queue.prefetch_line();
  };
  if (first) {
    product_tile<kRows, kVectors, Multiply, D>(
        a, kRowLanes, 1, panel, width, steps, 0, 0,
        [&](int64_t row, int64_t column, auto sum) HWY_ATTR { hn::StoreU(sum, d, at(row, column)); }, fetch);
  } else {
    product_tile<kRows, kVectors, Multiply, D>(
        a, kRowLanes, 1, panel, width, steps, 0, 0,
        [&](int64_t row, int64_t column, auto sum)
            HWY_ATTR { hn::StoreU(hn::Add(hn::LoadU(d, at(row, column)), sum), d, at(row, column)); },
        fetch);
  }
}

template <int kRows, class Multiply>
HWY_INLINE void add_panel(int64_t width, const float* a, const float* panel, int64_t steps, bool first, float* c,
                          int64_t c_stride, PrefetchQueue& queue) {
  if (width == kPanelVectors * lanes()) {
    add_tile<kRows, kPanelVectors, Multiply, Floats>(a, panel, steps, first, c, c_stride, queue);
  } else if (width == lanes()) {
    add_tile<kRows, 1, Multiply, Floats>(a, panel, steps, first, c, c_stride, queue);
  } else {
    add_tile<kRows, 1, Multiply, HalfVector>(a, panel, steps, first, c, c_stride, queue);
  }
}

// One tile of rows of A, kRowLanes apart, with all panels of a block of B.
template <class Multiply>
HWY_INLINE void add_panels(int64_t height, const float* a, const float* panels, int64_t columns, int64_t steps,
                           bool first, float* c, int64_t c_stride, PrefetchQueue& queue) {
  for (int64_t column = 0; column < columns;) {
    const int64_t width = panel_width(column, columns);
    const float* const panel = panels + column * steps;
    if (height == kTile) {
      add_panel<kTile, Multiply>(width, a, panel, steps, first, c + column, c_stride, queue);
    } else if (height == kTile / 3 * 2) {
      add_panel<kTile / 3 * 2, Multiply>(width, a, panel, steps, first, c + column, c_stride, queue);
    } else {
      add_panel<kTile / 3, Multiply>(width, a, panel, steps, first, c + column, c_stride, queue);
    }
    column += width;
  }
}

// Where things lie in the scratch of times_transposed.
struct TransposedScratch {
  TransposedScratch(int64_t rows, int64_t all_steps)
      : blocks(all_steps), columns(padded(std::min(rows, kExpertRows), half_lanes())) {
    panels = 0;
    a = panels + columns * blocks.all;
    c = a + std::max<int64_t>(kTile, kPanelVectors * lanes()) * kRowLanes;
    rows_of_slab = c + kSlab * columns;
    size = rows_of_slab + kSlab * columns;
  }
  StepBlocks blocks;
  int64_t columns;  // rows of x, padded
  int64_t panels, a, c, rows_of_slab, size;
};

// x^T as panels, one block of steps after the other.
template <class Kind>
void pack_columns(const typename Kind::Input* x, int64_t rows, int64_t in, const StepBlocks& blocks, int64_t columns,
                  float* buffer, float* to) {
  for (int64_t step = 0; step < blocks.all; step += blocks.most) {
    const int64_t begin = step * Kind::kRows;
    const int64_t terms = std::min(blocks.most * Kind::kRows, in - begin);
    const int64_t steps = steps_of<Kind>(terms);
    for (int64_t column = 0; column < columns;) {
      const int64_t width = panel_width(column, columns);
      pack_rows<Kind>(x + column * in + begin, in, std::min(width, rows - column), width, terms, buffer, kRowLanes);
      transpose(buffer, kRowLanes, width, steps, to + step * columns + column * steps, width);
      column += width;
    }
  }
}

// The columns of a slab to their place in y, whole cache lines of a row at a time: rows may lie a power of two apart,
// and a column of them in few sets of a cache.
template <class T>
HWY_INLINE void leave_transposed(const float* c, int64_t columns, int64_t outputs, int64_t rows, float* buffer, T* y,
                                 int64_t out) {
  transpose(c, columns, outputs, rows, buffer, kSlab);
  for (int64_t row = 0; row < rows; ++row) {
    for_each_vector(0, outputs, [&](int64_t i, auto access) HWY_ATTR {
      access.store(access.load(Floats(), buffer + row * kSlab + i), Floats(), y + row * out + i);
    });
  }
}

// At most kExpertRows rows.
template <class Kind>
void times_transposed(const typename Kind::Input* x, const typename Kind::Input* w, typename Kind::Input* y,
                      int64_t rows, int64_t in, int64_t out, int64_t out_begin, int64_t out_end, float* scratch) {
  const TransposedScratch at(rows, steps_of<Kind>(in));
  const StepBlocks& blocks = at.blocks;
  const int64_t columns = padded(rows, half_lanes());
  float* const c = scratch + at.c;
  pack_columns<Kind>(x, rows, in, blocks, columns, scratch + at.a, scratch + at.panels);
  for (int64_t slab = out_begin; slab < out_end; slab += kSlab) {
    const int64_t slab_end = std::min(out_end, slab + kSlab);
    for (int64_t step = 0; step < blocks.all; step += blocks.most) {
      const int64_t begin = step * Kind::kRows;
      const int64_t terms = std::min(blocks.most * Kind::kRows, in - begin);
      const int64_t steps = steps_of<Kind>(terms);
      for (int64_t row = slab; row < slab_end; row += kTile) {
        const int64_t count = std::min<int64_t>(kTile, slab_end - row);
        const int64_t height = tile_height(count);
        pack_rows<Kind>(w + row * in + begin, in, count, height, terms, scratch + at.a, kRowLanes);
        // The rows of the next tile; of the next slab a block earlier than needed.
        PrefetchQueue queue(terms);
        const int64_t next = row + kTile < slab_end ? row + kTile : slab + kSlab;
        queue.add(w + next * in + begin, in, std::min<int64_t>(kTile, out_end - next));
        add_panels<typename Kind::Multiply>(height, scratch + at.a, scratch + at.panels + step * columns, columns,
                                            steps, step == 0, c + (row - slab) * columns, columns, queue);
      }
    }
    leave_transposed(c, columns, slab_end - slab, rows, scratch + at.rows_of_slab, y + slab, out);
  }
}

// Where things lie in the scratch of times.
struct TimesScratch {
  TimesScratch(int64_t rows, int64_t all_steps) : blocks(all_steps) {
    panels = 0;
    a = panels + kMostColumns * blocks.most;
    c = a + kTile * kRowLanes;
    size = c + padded(std::min(rows, kExpertRows), kTile) * kMostColumns;
  }
  StepBlocks blocks;
  int64_t panels, a, c, size;
};

// Some of the columns of x, at most kMostColumns.
template <class Kind>
void times_columns(const typename Kind::Input* y, const typename Kind::Input* w, typename Kind::Input* x, int64_t rows,
                   int64_t out, int64_t in, int64_t columns, float* scratch) {
  const TimesScratch at(rows, steps_of<Kind>(out));
  const StepBlocks& blocks = at.blocks;
  const int64_t panel = kPanelVectors * lanes();
  const int64_t all_columns = padded(columns, panel);
  float* const c = scratch + at.c;
  for (int64_t step = 0; step < blocks.all; step += blocks.most) {
    const int64_t begin = step * Kind::kRows;
    const int64_t terms = std::min(blocks.most * Kind::kRows, out - begin);
    const int64_t steps = steps_of<Kind>(terms);
    pack_panels<Kind>(w + begin * in, in, terms, columns, panel, scratch + at.panels);
    PrefetchQueue queue(columns);
    queue.add(w + (begin + terms) * in, in, std::min(blocks.most * Kind::kRows, out - begin - terms));
    for (int64_t row = 0; row < rows; row += kTile) {
      const int64_t count = std::min<int64_t>(kTile, rows - row);
      const int64_t height = tile_height(count);
      pack_rows<Kind>(y + row * out + begin, out, count, height, terms, scratch + at.a, kRowLanes);
      add_panels<typename Kind::Multiply>(height, scratch + at.a, scratch + at.panels, all_columns, steps, step == 0,
                                          c + row * all_columns, all_columns, queue);
    }
  }
  for (int64_t row = 0; row < rows; ++row) {
    for_each_vector(0, columns, [&](int64_t i, auto access) HWY_ATTR {
      access.store(access.load(Floats(), c + row * all_columns + i), Floats(), x + row * in + i);
    });
  }
}

template <class Kind>
void times_transposed_blocks(const typename Kind::Input* x, const typename Kind::Input* w, typename Kind::Input* y,
                             int64_t rows, int64_t in, int64_t out, int64_t out_begin, int64_t out_end,
                             float* scratch) {
  for (int64_t row = 0; row < rows; row += kExpertRows) {
    times_transposed<Kind>(x + row * in, w, y + row * out, std::min(kExpertRows, rows - row), in, out, out_begin,
                           out_end, scratch);
  }
}

template <class Kind>
void times_blocks(const typename Kind::Input* y, const typename Kind::Input* w, typename Kind::Input* x, int64_t rows,
                  int64_t out, int64_t in, int64_t in_begin, int64_t in_end, float* scratch) {
  for (int64_t row = 0; row < rows; row += kExpertRows) {
    for (int64_t column = in_begin; column < in_end; column += kMostColumns) {
      times_columns<Kind>(y + row * out, w + column, x + row * in + column, std::min(kExpertRows, rows - row), out, in,
                          std::min(kMostColumns, in_end - column), scratch);
    }
  }
}

}  // namespace expert_products

int64_t expert_times_transposed_scratch(int64_t rows, int64_t in) {
  return rows <= 0 || in <= 0 ? 0 : expert_products::TransposedScratch(rows, in).size;
}
int64_t expert_times_scratch(int64_t rows, int64_t out) {
  return rows <= 0 || out <= 0 ? 0 : expert_products::TimesScratch(rows, out).size;
}
void expert_times_transposed_of_floats(const float* x, const float* w, float* y, int64_t rows, int64_t in, int64_t out,
                                       int64_t out_begin, int64_t out_end, float* scratch) {
  expert_products::times_transposed_blocks<Singles>(x, w, y, rows, in, out, out_begin, out_end, scratch);
}
void expert_times_transposed_of_bfloat16(const Bfloat16* x, const Bfloat16* w, Bfloat16* y, int64_t rows, int64_t in,
                                         int64_t out, int64_t out_begin, int64_t out_end, float* scratch, bool pairs) {
#if SIAMESE_KERNELS_BFLOAT16_PAIRS
  if (pairs) {
    return expert_products::times_transposed_blocks<Pairs>(x, w, y, rows, in, out, out_begin, out_end, scratch);
  }
#endif
  (void)pairs;
  expert_products::times_transposed_blocks<Widened>(x, w, y, rows, in, out, out_begin, out_end, scratch);
}
void expert_times_of_floats(const float* y, const float* w, float* x, int64_t rows, int64_t out, int64_t in,
                            int64_t in_begin, int64_t in_end, float* scratch) {
  expert_products::times_blocks<Singles>(y, w, x, rows, out, in, in_begin, in_end, scratch);
}
void expert_times_of_bfloat16(const Bfloat16* y, const Bfloat16* w, Bfloat16* x, int64_t rows, int64_t out, int64_t in,
                              int64_t in_begin, int64_t in_end, float* scratch, bool pairs) {
#if SIAMESE_KERNELS_BFLOAT16_PAIRS
  if (pairs) return expert_products::times_blocks<Pairs>(y, w, x, rows, out, in, in_begin, in_end, scratch);
#endif
  (void)pairs;
  expert_products::times_blocks<Widened>(y, w, x, rows, out, in, in_begin, in_end, scratch);
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace siamese::kernels {

HWY_EXPORT(expert_times_transposed_scratch);
HWY_EXPORT(expert_times_scratch);
HWY_EXPORT(expert_times_transposed_of_floats);
HWY_EXPORT(expert_times_transposed_of_bfloat16);
HWY_EXPORT(expert_times_of_floats);
HWY_EXPORT(expert_times_of_bfloat16);

int64_t expert_times_transposed_scratch(int64_t rows, int64_t in) {
  return HWY_DYNAMIC_DISPATCH(expert_times_transposed_scratch)(rows, in);
}

int64_t expert_times_scratch(int64_t rows, int64_t out) {
  return HWY_DYNAMIC_DISPATCH(expert_times_scratch)(rows, out);
}

void expert_times_transposed(const float* x, const float* w, float* y, int64_t rows, int64_t in, int64_t out,
                             int64_t out_begin, int64_t out_end, float* scratch) {
  HWY_DYNAMIC_DISPATCH(expert_times_transposed_of_floats)(x, w, y, rows, in, out, out_begin, out_end, scratch);
}

void expert_times_transposed(const Bfloat16* x, const Bfloat16* w, Bfloat16* y, int64_t rows, int64_t in, int64_t out,
                             int64_t out_begin, int64_t out_end, float* scratch) {
  HWY_DYNAMIC_DISPATCH(expert_times_transposed_of_bfloat16)
  (x, w, y, rows, in, out, out_begin, out_end, scratch, has_bfloat16_products());
}

void expert_times(const float* y, const float* w, float* x, int64_t rows, int64_t out, int64_t in, int64_t in_begin,
                  int64_t in_end, float* scratch) {
  HWY_DYNAMIC_DISPATCH(expert_times_of_floats)(y, w, x, rows, out, in, in_begin, in_end, scratch);
}

void expert_times(const Bfloat16* y, const Bfloat16* w, Bfloat16* x, int64_t rows, int64_t out, int64_t in,
                  int64_t in_begin, int64_t in_end, float* scratch) {
  HWY_DYNAMIC_DISPATCH(expert_times_of_bfloat16)
  (y, w, x, rows, out, in, in_begin, in_end, scratch, has_bfloat16_products());
}

}  // namespace siamese::kernels
#endif  // HWY_ONCE
