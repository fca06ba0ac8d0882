// What each device holds and what it sends in a step, by how weights, gradients and moments are shared out. All
// formulas count whole buffers in float32 where the engine sums, and in the type of the products where only they read.
#pragma once

#include "siamese/base/enum_text.h"
#include "siamese/plan/machine.h"
#include "siamese/plan/run_needs.h"

namespace siamese::plan {

enum class Sharding {
  none,       // data parallel: every device holds everything; gradients are summed
  optimizer,  // but for 1 / devices of the moments, and of the float32 numbers of weights that products read rounded
              // (ZeRO-1); updated weights are gathered
  fsdp,       // 1 / devices of weights, gradients and moments (ZeRO-3); a block is gathered when it is needed
};

struct DeviceBytes {
  double weights = 0;  // with their averages and their rounded copies
  double gradients = 0;
  double moments = 0;
  double gathered = 0;  // fsdp: the weights of the ends and of two blocks (one computes, one arrives), and the gradient
                        // of one
  double activations = 0;
  double saving = 0;  // the copy that a checkpoint is written from

  double total() const { return weights + gradients + moments + gathered + activations + saving; }
};

DeviceBytes device_bytes(const RunNeeds& needs, Sharding sharding, int64_t devices, double activations);

// What one device sends in a step. A scatter or gather of a buffer of B bytes over N devices sends B (N - 1) / N from
// each. `passes`: micro-batches of a device in a step, for each of which fsdp gathers and scatters anew.
struct Traffic {
  double gathered_bytes = 0;   // buffers, before the factor (N - 1) / N
  double scattered_bytes = 0;  // the same, of sums
  double messages = 0;         // gathers and scatters

  double sent_bytes(int64_t devices) const;
};
Traffic traffic(const RunNeeds& needs, Sharding sharding, int64_t devices, double passes);

// Seconds of a gather or scatter of a buffer of `bytes`: first in the nodes, then each device of a node with its
// counterparts in the others for its part:
//   (g - 1) / g B / node link + (M - 1) / M (B / g) / link,  g devices in each of M nodes.
double exchange_seconds(const Machine& machine, double bytes);
// Of `count` messages without content: log2(devices) hops each.
double latency_seconds(const Machine& machine, double count);

}  // namespace siamese::plan

template <>
struct siamese::EnumText<siamese::plan::Sharding> {
  static constexpr EnumNames<plan::Sharding, 3> names{
      {{plan::Sharding::none, "none"}, {plan::Sharding::optimizer, "optimizer"}, {plan::Sharding::fsdp, "fsdp"}}};
};
