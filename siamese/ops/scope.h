// Names the part of a step that a piece of code belongs to, for whoever watches (measure/part_times.h, PyTorch's own
// profiler): "part::junction", "part::norm", ... Costs nanoseconds when nobody does. A scope covers what runs in
// it, and in backward the autograd nodes that were made in it.
#pragma once

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>

namespace siamese::ops {

class PartScope {
 public:
  explicit PartScope(const char* name) : record_(at::RecordScope::USER_SCOPE) {
    if (record_.isActive()) record_.before(name, static_cast<int64_t>(at::sequence_number::peek()));
  }
  PartScope(const PartScope&) = delete;
  PartScope& operator=(const PartScope&) = delete;

 private:
  at::RecordFunction record_;
};

}  // namespace siamese::ops
