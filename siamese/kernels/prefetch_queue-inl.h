// Rows of a matrix, fetched while a product is computed; included once per SIMD target.
#include "hwy/cache_control.h"

#include "siamese/kernels/vectors-inl.h"

#if defined(SIAMESE_KERNELS_PREFETCH_QUEUE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SIAMESE_KERNELS_PREFETCH_QUEUE_INL_H_
#undef SIAMESE_KERNELS_PREFETCH_QUEUE_INL_H_
#else
#define SIAMESE_KERNELS_PREFETCH_QUEUE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

// Rows that will be needed soon. They lie far apart, so that the hardware does not foresee them, and
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

  // One line of the oldest row: for products long enough that all are fetched before they are needed.
  HWY_INLINE void prefetch_line() {
    if (waiting_ == 0) return;
    Rows& rows = lists_[lists_used_ - 1];
    hwy::Prefetch(rows.at + line_);
    line_ += kLineBytes;
    if (line_ < rows.length) return;
    line_ = 0;
    rows.at += rows.stride;
    --waiting_;
    if (--rows.count == 0) --lists_used_;
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
  int64_t line_ = 0;
  int lists_used_ = 0;
  Rows lists_[8];
};

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
