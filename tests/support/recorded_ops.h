// What LibTorch's dispatcher is asked for on this thread while a recorder lives.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

namespace siamese::testing {

struct RecordedOp {
  std::string name;                // "aten::clone"
  std::vector<c10::IValue> given;  // its arguments
};

class RecordedOps {
 public:
  RecordedOps() {
    current() = this;
    handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(before, after)
                                             .needsInputs(true)
                                             .needsOutputs(true)
                                             .scopes({at::RecordScope::FUNCTION}));
  }
  ~RecordedOps() {
    at::removeCallback(handle_);
    current() = nullptr;
  }
  RecordedOps(const RecordedOps&) = delete;
  RecordedOps& operator=(const RecordedOps&) = delete;

  const std::vector<RecordedOp>& list() const { return list_; }
  // Elements of the largest tensor that was made.
  int64_t largest_made() const { return largest_made_; }
  // How many strided tensors were copied to dense ones.
  int64_t copies_of_strided() const {
    return std::count_if(list_.begin(), list_.end(), [](const RecordedOp& op) {
      return op.name == "aten::clone" && op.given[0].isTensor() && !op.given[0].toTensor().is_contiguous();
    });
  }

 private:
  static RecordedOps*& current() {
    static thread_local RecordedOps* recorder = nullptr;
    return recorder;
  }

  static std::unique_ptr<at::ObserverContext> before(const at::RecordFunction& op) {
    const auto given = op.inputs();
    current()->list_.push_back({op.name(), std::vector<c10::IValue>(given.begin(), given.end())});
    return nullptr;
  }

  static void after(const at::RecordFunction& op, at::ObserverContext*) {
    for (const c10::IValue& made : op.outputs()) {
      if (!made.isTensor() || !made.toTensor().defined()) continue;
      current()->largest_made_ = std::max(current()->largest_made_, made.toTensor().numel());
    }
  }

  at::CallbackHandle handle_{};
  std::vector<RecordedOp> list_;
  int64_t largest_made_ = 0;
};

}  // namespace siamese::testing
