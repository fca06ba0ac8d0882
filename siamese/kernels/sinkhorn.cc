#include "siamese/kernels/sinkhorn.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "siamese/kernels/sinkhorn.cc"
#include "hwy/foreach_target.h"

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// A batch of rows side by side: entry e of all of them is one vector, at e * lanes.
using SinkhornLanes = hn::CappedTag<float, kSinkhornLanes>;

HWY_INLINE int64_t sinkhorn_lanes() { return static_cast<int64_t>(hn::Lanes(SinkhornLanes())); }

// `count` rows of `size` numbers into a batch; lanes beyond them are 0.
HWY_INLINE void load_batch(const float* rows, int64_t count, int64_t size, float* batch) {
  const int64_t lanes = sinkhorn_lanes();
  for (int64_t e = 0; e < size; ++e) {
    for (int64_t lane = 0; lane < lanes; ++lane) batch[e * lanes + lane] = lane < count ? rows[lane * size + e] : 0.0F;
  }
}

HWY_INLINE void store_batch(const float* batch, int64_t count, int64_t size, float* rows) {
  const int64_t lanes = sinkhorn_lanes();
  for (int64_t e = 0; e < size; ++e) {
    for (int64_t lane = 0; lane < count; ++lane) rows[lane * size + e] = batch[e * lanes + lane];
  }
}

// One step over n entries `stride` floats apart: their log sum exp is taken off, and exp of what is left goes to p.
HWY_INLINE void normalise_entries(float* entries, float* p, int64_t n, int64_t stride) {
  const SinkhornLanes d;
  auto top = hn::LoadU(d, entries);
  for (int64_t k = 1; k < n; ++k) top = hn::Max(top, hn::LoadU(d, entries + k * stride));
  auto sum = hn::Zero(d);
  for (int64_t k = 0; k < n; ++k) {
    const auto e = hn::Exp(d, hn::Sub(hn::LoadU(d, entries + k * stride), top));
    hn::StoreU(e, d, p + k * stride);
    sum = hn::Add(sum, e);
  }
  const auto log_sum = hn::Add(top, hn::Log(d, sum));
  const auto scale = hn::Div(hn::Set(d, 1.0F), sum);
  for (int64_t k = 0; k < n; ++k) {
    hn::StoreU(hn::Sub(hn::LoadU(d, entries + k * stride), log_sum), d, entries + k * stride);
    hn::StoreU(hn::Mul(hn::LoadU(d, p + k * stride), scale), d, p + k * stride);
  }
}

// dy of such a step becomes dx.
HWY_INLINE void normalise_entries_backward(float* gradient, const float* p, int64_t n, int64_t stride) {
  const SinkhornLanes d;
  auto sum = hn::Zero(d);
  for (int64_t k = 0; k < n; ++k) sum = hn::Add(sum, hn::LoadU(d, gradient + k * stride));
  for (int64_t k = 0; k < n; ++k) {
    const auto dy = hn::LoadU(d, gradient + k * stride);
    hn::StoreU(hn::NegMulAdd(hn::LoadU(d, p + k * stride), sum, dy), d, gradient + k * stride);
  }
}

// visit(first entry, stride) for each column (or row) of a batch of n x n matrices.
template <class Visit>
HWY_INLINE void for_each_line(bool columns, int64_t n, const Visit& visit) {
  const int64_t lanes = sinkhorn_lanes();
  for (int64_t k = 0; k < n; ++k) columns ? visit(k * lanes, n * lanes) : visit(k * n * lanes, lanes);
}

// All rounds over a batch of logits; step t leaves exp of the matrix at p + t * step.
HWY_INLINE void run_rounds(float* matrix, float* p, int64_t step, int64_t n, int64_t iterations) {
  for (int64_t t = 0; t < 2 * iterations; ++t) {
    for_each_line(t % 2 == 0, n, [&](int64_t first, int64_t stride) HWY_ATTR {
      normalise_entries(matrix + first, p + t * step + first, n, stride);
    });
  }
}

void sinkhorn_forward(const float* logits, int64_t n, int64_t iterations, float* out, int64_t row_begin,
                      int64_t row_end) {
  const SinkhornLanes d;
  const int64_t lanes = sinkhorn_lanes();
  const int64_t size = n * n;
  float matrix[kMaxSinkhornSize * kMaxSinkhornSize * kSinkhornLanes];
  float p[kMaxSinkhornSize * kMaxSinkhornSize * kSinkhornLanes];
  for (int64_t row = row_begin; row < row_end; row += lanes) {
    const int64_t count = std::min(lanes, row_end - row);
    load_batch(logits + row * size, count, size, matrix);
    run_rounds(matrix, p, 0, n, iterations);
    for (int64_t e = 0; e < size; ++e) {
      // Highway's Exp gives 0 for NaN; the matrix still has it, and 0 times anything finite adds nothing.
      const auto value = hn::MulAdd(hn::LoadU(d, matrix + e * lanes), hn::Zero(d), hn::LoadU(d, p + e * lanes));
      hn::StoreU(value, d, p + e * lanes);
    }
    store_batch(p, count, size, out + row * size);
  }
}

void sinkhorn_backward(const float* d_out, const float* logits, int64_t n, int64_t iterations, float* d_logits,
                       float* scratch, int64_t row_begin, int64_t row_end) {
  const SinkhornLanes d;
  const int64_t lanes = sinkhorn_lanes();
  const int64_t size = n * n;
  const int64_t step = size * lanes;
  float* const matrix = scratch;
  float* const gradient = scratch + step;
  float* const p = scratch + 2 * step;
  const float* const result = p + (2 * iterations - 1) * step;
  for (int64_t row = row_begin; row < row_end; row += lanes) {
    const int64_t count = std::min(lanes, row_end - row);
    load_batch(logits + row * size, count, size, matrix);
    load_batch(d_out + row * size, count, size, gradient);
    run_rounds(matrix, p, step, n, iterations);
    for (int64_t e = 0; e < step; e += lanes) {
      hn::StoreU(hn::Mul(hn::LoadU(d, gradient + e), hn::LoadU(d, result + e)), d, gradient + e);
    }
    for (int64_t t = 2 * iterations - 1; t >= 0; --t) {
      for_each_line(t % 2 == 0, n, [&](int64_t first, int64_t stride) HWY_ATTR {
        normalise_entries_backward(gradient + first, p + t * step + first, n, stride);
      });
    }
    store_batch(gradient, count, size, d_logits + row * size);
  }
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace siamese::kernels {

HWY_EXPORT(sinkhorn_forward);
HWY_EXPORT(sinkhorn_backward);

void sinkhorn_forward(const float* logits, int64_t n, int64_t iterations, float* out, int64_t row_begin,
                      int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(sinkhorn_forward)(logits, n, iterations, out, row_begin, row_end);
}

void sinkhorn_backward(const float* d_out, const float* logits, int64_t n, int64_t iterations, float* d_logits,
                       float* scratch, int64_t row_begin, int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(sinkhorn_backward)(d_out, logits, n, iterations, d_logits, scratch, row_begin, row_end);
}

}  // namespace siamese::kernels
#endif  // HWY_ONCE
