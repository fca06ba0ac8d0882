// The same bits at any number of threads. Seven are more than most machines that run tests have cores: work is cut into
// as many shares all the same.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "tests/support/tensors.h"

#include <ATen/Parallel.h>

namespace siamese::testing {

inline const std::vector<int>& thread_counts() {
  static const std::vector<int> counts = {1, 2, 3, 4, 7};
  return counts;
}

class ThreadsGuard {
 public:
  ThreadsGuard() : before_(at::get_num_threads()) {}
  ~ThreadsGuard() { at::set_num_threads(before_); }
  ThreadsGuard(const ThreadsGuard&) = delete;
  ThreadsGuard& operator=(const ThreadsGuard&) = delete;

 private:
  int before_;
};

// make() -> tensors, undefined ones allowed.
template <class Make>
void expect_same_at_any_thread_count(const std::string& what, const Make& make) {
  const ThreadsGuard guard;
  std::vector<at::Tensor> first;
  for (const int threads : thread_counts()) {
    at::set_num_threads(threads);
    const std::vector<at::Tensor> made = make();
    if (threads == 1) first = made;
    ASSERT_EQ(made.size(), first.size()) << what;
    for (size_t i = 0; i < made.size(); ++i) {
      expect_same_bits(made[i], first[i],
                       what + ", result " + std::to_string(i) + " at " + std::to_string(threads) + " threads");
    }
  }
}

// y = function(inputs) and the gradient of every input.
template <class Function>
void expect_function_same_at_any_thread_count(const std::string& what, const std::vector<at::Tensor>& given,
                                              const Function& function) {
  expect_same_at_any_thread_count(what, [&] {
    std::vector<at::Tensor> inputs;
    for (const auto& input : given) inputs.push_back(leaf(input));
    const at::Tensor y = function(inputs);
    std::vector<at::Tensor> made = gradients(y, inputs);
    made.push_back(y.detach());
    return made;
  });
}

}  // namespace siamese::testing
