#include "siamese/plan/sharding.h"

#include <cmath>

namespace siamese::plan {
namespace {

constexpr double kFloatBytes = 4;

double share_of_others(int64_t count) { return static_cast<double>(count - 1) / static_cast<double>(count); }

}  // namespace

DeviceBytes device_bytes(const RunNeeds& needs, Sharding sharding, int64_t devices, double activations) {
  const auto all = static_cast<double>(devices);
  DeviceBytes bytes{.weights = kFloatBytes * (needs.weights + needs.averages) + needs.rounded_weight_bytes,
                    .gradients = kFloatBytes * needs.trained,
                    .moments = kFloatBytes * needs.moments,
                    .activations = activations};
  if (needs.copies_to_save) bytes.saving = kFloatBytes * (needs.weights + needs.moments + needs.averages) / all;
  if (devices == 1 || sharding == Sharding::none) return bytes;
  bytes.moments /= all;
  if (sharding == Sharding::optimizer) {
    const double copies = needs.averages > 0 ? 2 : 1;  // the weight and its average
    bytes.weights -= kFloatBytes * copies * needs.read_rounded * share_of_others(devices);
    return bytes;
  }
  // The rounded copies are what is gathered: none is kept.
  bytes.weights = kFloatBytes * (needs.weights + needs.averages) / all;
  bytes.gradients /= all;
  bytes.gathered =
      needs.operand_bytes * (needs.outside_blocks + 2 * needs.largest_block) + kFloatBytes * needs.largest_block;
  return bytes;
}

double Traffic::sent_bytes(int64_t devices) const {
  return (gathered_bytes + scattered_bytes) * share_of_others(devices);
}

Traffic traffic(const RunNeeds& needs, Sharding sharding, int64_t devices, double passes) {
  if (devices == 1) return {};
  const double gradients = kFloatBytes * needs.trained;
  // The sums of the gradients go to all, or the weights that one device has updated.
  if (sharding == Sharding::none) return {.gathered_bytes = gradients, .scattered_bytes = gradients, .messages = 2};
  if (sharding == Sharding::optimizer) {
    const double saved = (kFloatBytes - needs.operand_bytes) * needs.read_rounded;
    return {.gathered_bytes = gradients - saved, .scattered_bytes = gradients, .messages = 2};
  }
  const double gathers = 2;  // for forward, and again for backward
  const auto units = static_cast<double>(needs.blocks + 1);
  return {.gathered_bytes = passes * gathers * needs.operand_bytes * needs.weights,
          .scattered_bytes = passes * gradients,
          .messages = passes * (gathers + 1) * units};
}

double exchange_seconds(const Machine& machine, double bytes) {
  const int64_t in_node = machine.devices_in_node();
  const double part = bytes / static_cast<double>(in_node);
  return share_of_others(in_node) * bytes / machine.node_link_bytes_each_second +
         share_of_others(machine.nodes) * part / machine.link_bytes_each_second;
}

double latency_seconds(const Machine& machine, double count) {
  return count * machine.latency_seconds * std::ceil(std::log2(static_cast<double>(machine.devices)));
}

}  // namespace siamese::plan
