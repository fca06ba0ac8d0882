// What a run would take on a machine: memory, communication, time, price. No measurement, and nothing of the machine
// but the rates that it is given.
#pragma once

#include <vector>

#include "siamese/plan/checkpoint_interval.h"
#include "siamese/plan/sharding.h"

namespace siamese::plan {

struct Plan {
  Sharding sharding = Sharding::none;
  bool recompute = false;

  int64_t largest_micro_batch = 0;  // that fits, at most the samples of a device; 0: not even one sample does
  int64_t micro_batch = 0;          // what the rest is of: the config's, or the largest that fits, or 1
  bool fits = false;                // with it
  DeviceBytes bytes;

  double sent_bytes = 0;             // by a device, in a step
  double communication_seconds = 0;  // if nothing of it were hidden
  double exposed_seconds = 0;        // of these, what the step waits for
  double compute_seconds = 0;        // products: forward, backward, and forward once more where it is recomputed
  double update_seconds = 0;
  double step_seconds = 0;
  double days = 0;  // of the whole run, with what is lost to saving and failures
  double price = 0;

  double communication_share() const { return exposed_seconds / step_seconds; }
};

// The samples of the device that has most. UsageError when there are more devices than samples, or when nodes do not
// divide them.
int64_t samples_of_device(const RunNeeds& needs, const Machine& machine);

// For every Sharding (one device: none), activations kept and recomputed.
std::vector<Plan> plans(const RunNeeds& needs, const Machine& machine);

Saving saving(const RunNeeds& needs, const Machine& machine);

}  // namespace siamese::plan
