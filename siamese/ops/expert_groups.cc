#include "siamese/ops/expert_groups.h"

#include <vector>

#include <ATen/ATen.h>

#include "siamese/ops/arguments.h"

namespace siamese::ops {

ExpertGroups group_by_expert(const at::Tensor& chosen, int64_t experts) {
  check_indices("group_by_expert", "chosen", chosen, experts);
  const int64_t count = chosen.numel();
  const int64_t per_row = chosen.size(1);
  ExpertGroups groups{at::empty({count}, at::kLong), at::empty_like(chosen), at::zeros({experts + 1}, at::kLong)};
  const int64_t* const choice = chosen.const_data_ptr<int64_t>();
  int64_t* const first = groups.first.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < count; ++i) ++first[choice[i] + 1];
  for (int64_t e = 0; e < experts; ++e) first[e + 1] += first[e];
  std::vector<int64_t> next(first, first + experts);
  int64_t* const source = groups.source.mutable_data_ptr<int64_t>();
  int64_t* const place = groups.place.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < count; ++i) {
    place[i] = next[static_cast<size_t>(choice[i])]++;
    source[place[i]] = i / per_row;
  }
  return groups;
}

}  // namespace siamese::ops
