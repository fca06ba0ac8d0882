#include "siamese/measure/part_times.h"

#include <chrono>
#include <set>
#include <string_view>

#include "siamese/base/check.h"

namespace siamese::measure {
namespace parts {

thread_local PartTimes* current = nullptr;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace parts

std::string part_of_operator(const std::string& name) {
  static const std::set<std::string> products = {
      "aten::linear", "aten::addmm",           "aten::addmm_", "aten::mm", "aten::mm_",
      "aten::bmm",    "aten::baddbmm",         "aten::matmul", "aten::mv", "aten::addmv",
      "aten::addbmm", "aten::linear_backward", "part::linear"};
  constexpr std::string_view kOurs = "part::";
  if (products.contains(name) || name.starts_with("mkldnn::_linear")) return "matmul";
  if (name.starts_with(kOurs)) return name.substr(kOurs.size());
  if (name.find("scaled_dot_product") != std::string::npos) return "attention";
  if (name.starts_with("aten::embedding")) return "embedding";
  return "";
}

PartTimes::PartTimes() {
  SIAMESE_INVARIANT(parts::current == nullptr);
  parts::current = this;
  using Scope = at::RecordScope;
  handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(&PartTimes::begin, &PartTimes::end)
                                           .scopes({Scope::FUNCTION, Scope::BACKWARD_FUNCTION, Scope::USER_SCOPE}));
}

PartTimes::~PartTimes() {
  at::removeCallback(handle_);
  parts::current = nullptr;
}

std::string PartTimes::part_of(const at::RecordFunction& function) {
  const std::string around = running_.empty() ? "other" : running_.back().part;
  const std::string own = part_of_operator(function.name());
  if (around == "attention") return around;  // its products are its own
  if (!own.empty()) return own;
  if (function.scope() == at::RecordScope::BACKWARD_FUNCTION) {
    const auto found = part_of_node_.find(function.seqNr());
    if (found != part_of_node_.end()) return found->second;
  }
  return around;
}

std::unique_ptr<at::ObserverContext> PartTimes::begin(const at::RecordFunction& function) {
  PartTimes* const times = parts::current;
  if (times == nullptr) return nullptr;
  std::string part = times->part_of(function);
  // The last operator to announce a number before a node takes it is the one that makes the node.
  const bool of_the_engine = std::string_view(function.name()).starts_with("autograd::");
  if (function.seqNr() >= 0 && function.scope() != at::RecordScope::BACKWARD_FUNCTION && !of_the_engine) {
    times->part_of_node_[function.seqNr()] = part;
  }
  times->running_.push_back({std::move(part), parts::now(), 0});
  return nullptr;
}

void PartTimes::end(const at::RecordFunction&, at::ObserverContext*) {
  PartTimes* const times = parts::current;
  if (times == nullptr || times->running_.empty()) return;
  const Running ended = std::move(times->running_.back());
  times->running_.pop_back();
  const double seconds = parts::now() - ended.start;
  times->seconds_[ended.part] += seconds - ended.inner;
  if (!times->running_.empty()) times->running_.back().inner += seconds;
}

}  // namespace siamese::measure
