// What a run needs, from its config alone: the model is made without memory and asked (models/parts.h,
// models/pass_memory.h).
#pragma once

#include <array>
#include <cstdint>

#include "siamese/models/parts.h"
#include "siamese/plan/run_needs.h"
#include "siamese/train/config.h"

namespace siamese::train {

struct Needs {
  plan::RunNeeds run;
  std::array<int64_t, models::kModelParts> parameters_by_part{};
  int64_t parameters = 0;
  int64_t active_parameters = 0;  // that one token meets
  // Forward, of one token in a sample of full length; dense: if it met all experts.
  double forward_flops_each_token = 0;
  double dense_forward_flops_each_token = 0;
  double step_flops = 0;  // forward, backward and update; nothing recomputed
  double tokens_each_step = 0;
  int64_t key_value_bytes = 0;  // of one sequence of full length in generation; 0: the family has none
};

Needs needs_of(const RunConfig& config);

}  // namespace siamese::train
