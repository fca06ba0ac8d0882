#include "siamese/kernels/outer_products.h"

#include <algorithm>
#include <cstring>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "siamese/kernels/outer_products.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "siamese/kernels/tile_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

// A tile of dW is kOutputs tall and a panel wide. Its outputs' columns of dy (256 rows of 12 floats) stay in the first
// cache, while the panels of x come past from the second: 768 KB of its 1 MB hold a block of them, the rest two slabs
// of dy.
inline constexpr int kPanelVectors = 2;
inline constexpr int kOutputs = kTileRows<kPanelVectors>;
inline constexpr int64_t kMostBlockRows = 256;
inline constexpr int64_t kBlockFloats = 192 * 1024;
inline constexpr int64_t kSlabOutputs = 8 * kOutputs;

HWY_INLINE int64_t parts_of(int64_t size, int64_t part) { return (size + part - 1) / part; }

// The largest equal blocks of x. Their rows depend on nothing but the number of rows, since they set the order of sums.
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
  const Blocks blocks(rows, in);
  return blocks.rows * (blocks.columns + 2 * kSlabOutputs);
}

// `columns` columns of x as panels, each of its rows next to one another; the last one is filled up with zeros.
HWY_INLINE void pack_panels(const float* x, int64_t stride, int64_t rows, int64_t columns, int64_t panel, float* to) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t column = 0; column < columns; column += panel, to += rows * panel) {
    const int64_t count = std::min(panel, columns - column);
    if (count == panel) {
      for (int64_t row = 0; row < rows; ++row) {
        for (int v = 0; v < kPanelVectors; ++v) {
          hn::StoreU(hn::LoadU(d, x + row * stride + column + v * lanes), d, to + row * panel + v * lanes);
        }
      }
    } else {
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t i = 0; i < count; ++i) to[row * panel + i] = x[row * stride + column + i];
        for (int64_t i = count; i < panel; ++i) to[row * panel + i] = 0;
      }
    }
  }
}

// A slab: columns of dy in tiles of kOutputs (the last may be narrower), each of its rows next to one another. It is
// packed a few rows at a time, between the tiles of the slab before it: its rows lie far apart, so that no hardware
// foresees them, and those of the next call are asked for now.
class Slab {
 public:
  Slab() = default;
  Slab(const float* dy, int64_t stride, int64_t rows, int64_t outputs, int64_t calls, float* to)
      : dy_(dy), stride_(stride), rows_(rows), outputs_(outputs), part_(parts_of(rows, calls)), to_(to) {
    ask(0, part_);
  }

  HWY_INLINE void pack_some() {
    const int64_t end = std::min(rows_, next_ + part_);
    ask(end, std::min(rows_, end + part_));
    for (; next_ < end; ++next_) pack(next_);
  }
  HWY_INLINE void pack_rest() {
    for (; next_ < rows_; ++next_) pack(next_);
  }

 private:
  HWY_INLINE void ask(int64_t begin, int64_t end) const {
    for (int64_t row = begin; row < end; ++row) {
      const float* const from = dy_ + row * stride_;
      for (int64_t i = 0; i < outputs_; i += kLine) __builtin_prefetch(from + i, 0, 3);
      __builtin_prefetch(from + outputs_ - 1, 0, 3);
    }
  }
  HWY_INLINE void pack(int64_t row) const {
    const float* const from = dy_ + row * stride_;
    int64_t output = 0;
    for (; output + kOutputs <= outputs_; output += kOutputs) {
      std::memcpy(to_ + output * rows_ + row * kOutputs, from + output, kOutputs * sizeof(float));
    }
    float* const tile = to_ + output * rows_ + row * (outputs_ - output);
    for (int64_t i = 0; output + i < outputs_; ++i) tile[i] = from[output + i];
  }

  static constexpr int64_t kLine = 64 / sizeof(float);
  const float* dy_ = nullptr;
  int64_t stride_ = 0, rows_ = 0, outputs_ = 0, part_ = 0;
  float* to_ = nullptr;
  int64_t next_ = 0;
};

template <int kRows>
HWY_INLINE void add_tile(const float* HWY_RESTRICT dy, int64_t dy_step, const float* HWY_RESTRICT x, int64_t rows,
                         float* HWY_RESTRICT dw, int64_t in, int64_t columns) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t panel = kPanelVectors * lanes;
  // Asked for now, there when the sums are.
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
    product_tile<kRows, kPanelVectors>(dy, 1, dy_step, x, panel, rows, 0, 0,
                                       [&](int64_t row, int64_t column, FloatVector sum)
                                           HWY_ATTR { add(WholeVector(), row, column, sum); });
  } else {
    product_tile<kRows, kPanelVectors>(dy, 1, dy_step, x, panel, rows, 0, 0,
                                       [&](int64_t row, int64_t column, FloatVector sum) HWY_ATTR {
                                         if (column + lanes <= columns) {
                                           add(WholeVector(), row, column, sum);
                                         } else if (column < columns) {
                                           add(PartVector{static_cast<size_t>(columns - column)}, row, column, sum);
                                         }
                                       });
  }
}

// Outputs left over go in tiles of 4, 2 and 1.
template <int kRows>
HWY_INLINE void add_part_tile(int64_t outputs, const float* dy, int64_t dy_step, const float* x, int64_t rows,
                              float* dw, int64_t in, int64_t columns) {
  while (outputs >= kRows) {
    add_tile<kRows>(dy, dy_step, x, rows, dw, in, columns);
    outputs -= kRows;
    dy += kRows;
    dw += kRows * in;
  }
  if constexpr (kRows > 1) add_part_tile<kRows / 2>(outputs, dy, dy_step, x, rows, dw, in, columns);
}

void add_outer_products(const float* dy, const float* x, float* dw, int64_t rows, int64_t out, int64_t in,
                        int64_t out_begin, int64_t out_end, float* scratch) {
  if (rows <= 0 || in <= 0 || out_begin >= out_end) return;
  const Blocks blocks(rows, in);
  float* const panels = scratch;
  float* slab = panels + blocks.rows * blocks.columns;
  float* next_slab = slab + blocks.rows * kSlabOutputs;
  const auto slab_at = [&](int64_t row, int64_t output, int64_t calls, float* to) HWY_ATTR {
    return Slab(dy + row * out + output, out, std::min(blocks.rows, rows - row),
                std::min(kSlabOutputs, out_end - output), calls, to);
  };
  slab_at(0, out_begin, 1, slab).pack_rest();
  for (int64_t row = 0; row < rows; row += blocks.rows) {
    const int64_t block_rows = std::min(blocks.rows, rows - row);
    for (int64_t column = 0; column < in; column += blocks.columns) {
      const int64_t block_columns = std::min(blocks.columns, in - column);
      pack_panels(x + row * in + column, in, block_rows, block_columns, blocks.panel, panels);
      for (int64_t first = out_begin; first < out_end; first += kSlabOutputs) {
        const int64_t slab_outputs = std::min(kSlabOutputs, out_end - first);
        const int64_t tiles = parts_of(slab_outputs, kOutputs) * parts_of(block_columns, blocks.panel);
        Slab next;
        if (first + kSlabOutputs < out_end) {
          next = slab_at(row, first + kSlabOutputs, tiles, next_slab);
        } else if (column + blocks.columns < in) {
          next = slab_at(row, out_begin, tiles, next_slab);
        } else if (row + blocks.rows < rows) {
          next = slab_at(row + blocks.rows, out_begin, tiles, next_slab);
        }
        for (int64_t output = 0; output < slab_outputs; output += kOutputs) {
          const int64_t outputs = std::min<int64_t>(kOutputs, slab_outputs - output);
          const float* const tile_dy = slab + output * block_rows;
          for (int64_t i = 0; i < block_columns; i += blocks.panel) {
            float* const tile_dw = dw + (first + output) * in + column + i;
            const float* const panel = panels + i * block_rows;
            if (outputs == kOutputs) {
              add_tile<kOutputs>(tile_dy, kOutputs, panel, block_rows, tile_dw, in, block_columns - i);
            } else {
              add_part_tile<4>(outputs, tile_dy, outputs, panel, block_rows, tile_dw, in, block_columns - i);
            }
            next.pack_some();
          }
        }
        next.pack_rest();
        std::swap(slab, next_slab);
      }
    }
  }
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace siamese::kernels {

HWY_EXPORT(outer_products_scratch);
HWY_EXPORT(add_outer_products);

int64_t outer_products_scratch(int64_t rows, int64_t out, int64_t in) {
  return HWY_DYNAMIC_DISPATCH(outer_products_scratch)(rows, out, in);
}

void add_outer_products(const float* dy, const float* x, float* dw, int64_t rows, int64_t out, int64_t in,
                        int64_t out_begin, int64_t out_end, float* scratch) {
  HWY_DYNAMIC_DISPATCH(add_outer_products)(dy, x, dw, rows, out, in, out_begin, out_end, scratch);
}

}  // namespace siamese::kernels
#endif  // HWY_ONCE
