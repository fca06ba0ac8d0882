#include "siamese/ops/one_thread.h"

#include <omp.h>

// MKL has a number of threads of its own, LibTorch sets it. A LibTorch without MKL does not have the function; its BLAS
// asks OpenMP.
extern "C" int MKL_Set_Num_Threads_Local(int threads) __attribute__((weak));

namespace siamese::ops {
namespace one_thread_detail {

int set_mkl_threads(int threads) {
  return MKL_Set_Num_Threads_Local != nullptr ? MKL_Set_Num_Threads_Local(threads) : 0;
}

}  // namespace one_thread_detail

// LibTorch sets the numbers of a thread that is new to it when that thread first asks for them: ask before.
OneThread::OneThread() : openmp_(at::get_num_threads()), mkl_(one_thread_detail::set_mkl_threads(1)) {
  omp_set_num_threads(1);
}

OneThread::~OneThread() {
  omp_set_num_threads(openmp_);
  one_thread_detail::set_mkl_threads(mkl_);
}

}  // namespace siamese::ops
