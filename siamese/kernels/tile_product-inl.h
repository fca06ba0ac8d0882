// Matrix product from registers, included once per SIMD target:
//   C(i, 0..N) = sum over k of A(i, k) B[k][0..N)
// A(i, k) lies anywhere, at a[i * row + k * step], and is broadcast: rows, columns or a transpose cost the same. B is
// rows of whole vectors. A tile of C is held in registers for the whole sum, then handed to the caller's `store` vector
// by vector: it may overwrite, add, or go on computing with the value while it is in a register.
#include "siamese/kernels/vectors-inl.h"

#if defined(SIAMESE_KERNELS_TILE_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SIAMESE_KERNELS_TILE_PRODUCT_INL_H_
#undef SIAMESE_KERNELS_TILE_PRODUCT_INL_H_
#else
#define SIAMESE_KERNELS_TILE_PRODUCT_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

using FloatVector = hn::Vec<Floats>;

// 24 sums in the 32 registers of AVX-512, 12 in the 16 of the others; the rest holds a row of B and a broadcast.
#if HWY_TARGET <= HWY_AVX3
inline constexpr int kTileVectors = 4;
template <int kVectors>
inline constexpr int kTileRows = kVectors == 4   ? 6
                                 : kVectors == 3 ? 8
                                                 : 12;
#else
inline constexpr int kTileVectors = 2;
template <int kVectors>
inline constexpr int kTileRows = 6;
#endif

inline constexpr int kTallestTile = kTileRows<1>;

struct BroadcastMatrix {
  const float* data;
  int64_t row;
  int64_t step;
};

struct RowMatrix {
  const float* data;
  int64_t stride;
};

// Which part of the product a tile of rows needs; what lies outside is known to be zero or not wanted (causality).
struct TileRange {
  int64_t step_begin;
  int64_t step_end;
  int64_t vectors;  // columns of C from the left
};

// sum + a b, of one number in each lane.
struct MultiplyAdd {
  template <class V>
  HWY_INLINE V operator()(V a, V b, V sum) const {
    return hn::MulAdd(a, b, sum);
  }
};

// sum + a b, where a lane of a and b is two bfloat16: an instruction that Highway does not know yet. Only where
// has_bfloat16_products() says that this CPU has it.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
#undef SIAMESE_KERNELS_BFLOAT16_PAIRS
#define SIAMESE_KERNELS_BFLOAT16_PAIRS 1
struct MultiplyAddPairs {
  template <class V>
  HWY_INLINE V operator()(V a, V b, V sum) const {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));  // NOLINT
    return sum;
  }
};
#else
#undef SIAMESE_KERNELS_BFLOAT16_PAIRS
#define SIAMESE_KERNELS_BFLOAT16_PAIRS 0
#endif

struct NothingElse {
  HWY_INLINE void operator()(int64_t) const {}
};

// D: vectors of floats, whole ones or shorter. each(k) is called before step k: what may go on beside the arithmetic.
template <int kRows, int kVectors, class Multiply = MultiplyAdd, class D = Floats, class Store,
          class Each = NothingElse>
HWY_INLINE void product_tile(const float* HWY_RESTRICT a, int64_t a_row, int64_t a_step, const float* HWY_RESTRICT b,
                             int64_t b_stride, int64_t steps, int64_t row, int64_t vector, const Store& store,
                             const Each& each = Each()) {
  const Multiply multiply_add;
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<D> sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) sums[i][j] = hn::Zero(d);
  }
  for (int64_t k = 0; k < steps; ++k) {
    each(k);
    hn::Vec<D> b_row[kVectors];
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) b_row[j] = hn::LoadU(d, b + j * lanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const auto a_ik = hn::Set(d, a[i * a_row]);
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) sums[i][j] = multiply_add(a_ik, b_row[j], sums[i][j]);
    }
    a += a_step;
    b += b_stride;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) store(row + i, (vector + j) * lanes, sums[i][j]);
  }
}

// Rows left over go in tiles of 4, 2 and 1.
template <class Multiply, int kRows, int kVectors, class Store>
void product_rows(const BroadcastMatrix& a, const RowMatrix& b, int64_t row, int64_t rows, int64_t vector,
                  const TileRange& range, const Store& store) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Floats()));
  const float* const b_data = b.data + range.step_begin * b.stride + vector * lanes;
  while (rows >= kRows) {
    product_tile<kRows, kVectors, Multiply>(a.data + row * a.row + range.step_begin * a.step, a.row, a.step, b_data,
                                            b.stride, range.step_end - range.step_begin, row, vector, store);
    row += kRows;
    rows -= kRows;
  }
  if constexpr (kRows > 1) {
    if (rows > 0) product_rows<Multiply, (kRows > 4 ? 4 : kRows / 2), kVectors>(a, b, row, rows, vector, range, store);
  }
}

// At most kVectors columns of vectors, fewer where the range says so.
template <class Multiply, int kVectors, class Store>
HWY_INLINE void product_columns(const BroadcastMatrix& a, const RowMatrix& b, int64_t row, int64_t rows, int64_t vector,
                                int64_t vectors, const TileRange& range, const Store& store) {
  if (vectors >= kVectors)
    return product_rows<Multiply, kTileRows<kVectors>, kVectors>(a, b, row, rows, vector, range, store);
  if constexpr (kVectors > 1) product_columns<Multiply, kVectors - 1>(a, b, row, rows, vector, vectors, range, store);
}

// All of C: `rows` times `vectors` whole vectors. range(row, rows) is asked for each tile of rows.
template <class Multiply = MultiplyAdd, class Range, class Store>
HWY_INLINE void tile_product(int64_t rows, int64_t vectors, const BroadcastMatrix& a, const RowMatrix& b,
                             const Range& range, const Store& store) {
  constexpr int64_t kRowsByVectors[] = {0, kTileRows<1>, kTileRows<2>, kTileRows<3>, kTileRows<4>};
  const int64_t column_tiles = (vectors + kTileVectors - 1) / kTileVectors;
  int64_t vector = 0;
  for (int64_t tile = 0; tile < column_tiles; ++tile) {
    // Five vectors are three and two, not four and one.
    const int64_t width = (vectors - vector + column_tiles - tile - 1) / (column_tiles - tile);
    const int64_t height = kRowsByVectors[width];
    for (int64_t row = 0; row < rows; row += height) {
      const int64_t tile_rows = HWY_MIN(height, rows - row);
      const TileRange part = range(row, tile_rows);
      const int64_t wanted = HWY_MIN(width, part.vectors - vector);
      if (wanted > 0) product_columns<Multiply, kTileVectors>(a, b, row, tile_rows, vector, wanted, part, store);
    }
    vector += width;
  }
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
