// Where the time of this thread goes, by part of the model. Operators that say nothing of themselves count to the part
// they run in; autograd nodes count to the part of the operator that made them.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/record_function.h>

namespace siamese::measure {

// The part an operator belongs to by its own name: "matmul", "attention", "embedding", NAME of "part::NAME"; empty
// when the name says nothing.
std::string part_of_operator(const std::string& name);

// Watches the thread that made it as long as it lives; one at a time.
class PartTimes {
 public:
  PartTimes();
  ~PartTimes();
  PartTimes(const PartTimes&) = delete;
  PartTimes& operator=(const PartTimes&) = delete;

  // Seconds inside operators so far, by part, each operator without those it called.
  const std::map<std::string, double>& seconds() const { return seconds_; }

 private:
  struct Running {
    std::string part;
    double start = 0;
    double inner = 0;  // seconds of the operators it called
  };
  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function);
  static void end(const at::RecordFunction& function, at::ObserverContext* context);
  std::string part_of(const at::RecordFunction& function);

  std::vector<Running> running_;
  std::unordered_map<int64_t, std::string> part_of_node_;  // by autograd's sequence number
  std::map<std::string, double> seconds_;
  at::CallbackHandle handle_;
};

}  // namespace siamese::measure
