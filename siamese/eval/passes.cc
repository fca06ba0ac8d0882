#include "siamese/eval/passes.h"

#include <algorithm>

namespace siamese::eval {

bool Passes::next_is_mine() {
  const auto pass = static_cast<int64_t>(rows_.size());
  rows_.emplace_back();
  return group_ == nullptr || pass % group_->size() == group_->rank();
}

// A number is one rank's and 0 on the others: their sum is that number, unless it is -0 or no number, which a sum with
// 0 keeps too but for the sign.
std::vector<std::vector<double>> Passes::all() {
  if (group_ == nullptr) return std::move(rows_);
  size_t width = 0;
  for (const auto& row : rows_) width = std::max(width, row.size());
  for (const std::string& text : comm::gather(*group_, std::to_string(width))) {
    width = std::max<size_t>(width, std::stoull(text));
  }
  std::vector<double> numbers(rows_.size() * width);
  for (size_t i = 0; i < rows_.size(); ++i) std::copy(rows_[i].begin(), rows_[i].end(), numbers.data() + i * width);
  comm::sum(*group_, std::span<double>(numbers));
  for (size_t i = 0; i < rows_.size(); ++i) {
    rows_[i].assign(numbers.data() + i * width, numbers.data() + (i + 1) * width);
  }
  return std::move(rows_);
}

}  // namespace siamese::eval
