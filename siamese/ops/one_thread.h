// Where bits must not depend on the number of threads, a library may not choose how to cut its work: LibTorch and the
// libraries below it cut a product, a sum, even an elementwise pass by their number of threads, and what lies at a cut
// is computed in another order. So they run on one thread, and what is worth sharing is cut here, by its size alone.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

namespace siamese::ops {

// While it lives, what this thread calls of LibTorch, MKL and oneDNN runs on this thread alone.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int openmp_;
  int mkl_;
};

// body(task) for each task, whichever thread is free taking the next; a library called inside runs on that thread
// alone.
template <class Body>
void for_each_task(int64_t tasks, const Body& body) {
  std::atomic<int64_t> next{0};
  const auto work = [&](int64_t, int64_t) {
    const OneThread one_thread;
    const c10::NoGradGuard no_grad;  // of this thread
    // A worker does not share the caller's InferenceMode: outside of it, an inference tensor may be written to only
    // below the key that counts versions.
    const at::AutoDispatchBelowADInplaceOrView below;
    for (int64_t task = next++; task < tasks; task = next++) body(task);
  };
  if (tasks > 1) {
    at::parallel_for(0, std::max(1, at::get_num_threads()), 1, work);
  } else {
    work(0, 1);
  }
}

// An expression in LibTorch's own operators.
using Tensors = std::vector<at::Tensor>;
using Expression = std::function<Tensors(const Tensors&)>;

}  // namespace siamese::ops
