#include "siamese/plan/plan.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "siamese/base/check.h"

namespace siamese::plan {
namespace {

constexpr double kFloatBytes = 4;
constexpr double kBackward = 2;  // passes' worth: two products for each of forward

// The most rows of a pass whose bytes fit, at most `samples`.
int64_t rows_that_fit(const PassBytes& pass, double room, int64_t samples) {
  if (pass.of(1) > room) return 0;
  const double rows = (room - pass.fixed) / pass.each_row;
  return rows < static_cast<double>(samples) ? static_cast<int64_t>(rows) : samples;
}

// Reads and writes of the update, which does nothing else: weights and moments both, gradients are cleared, measured
// and used.
double update_bytes(const RunNeeds& needs) { return kFloatBytes * (5 * needs.trained + 2 * needs.moments); }

void add_memory(const RunNeeds& needs, const Machine& machine, Plan& plan) {
  const PassBytes& pass = plan.recompute ? needs.recomputed : needs.kept;
  const int64_t samples = samples_of_device(needs, machine);
  const double room = machine.memory_bytes * machine.usable;
  const double state = device_bytes(needs, plan.sharding, machine.devices, 0).total();
  plan.largest_micro_batch = rows_that_fit(pass, room - state, samples);
  plan.micro_batch =
      needs.micro_batch > 0 ? std::min(needs.micro_batch, samples) : std::max<int64_t>(1, plan.largest_micro_batch);
  plan.bytes = device_bytes(needs, plan.sharding, machine.devices, pass.of(static_cast<double>(plan.micro_batch)));
  plan.fits = plan.micro_batch <= plan.largest_micro_batch;
}

void add_time(const RunNeeds& needs, const Machine& machine, Plan& plan) {
  const auto samples = static_cast<double>(samples_of_device(needs, machine));
  const double passes = std::ceil(samples / static_cast<double>(plan.micro_batch));
  const double rate = machine.flops_each_second * machine.utilization;
  const double forward = samples * needs.forward_flops_each_sample / rate;
  const double backward = (kBackward + (plan.recompute ? 1 : 0)) * forward;
  plan.compute_seconds = forward + backward;

  const double owners = plan.sharding == Sharding::none ? 1 : static_cast<double>(machine.devices);
  plan.update_seconds = (needs.update_flops / rate + update_bytes(needs) / machine.memory_bytes_each_second) / owners;

  const Traffic sent = traffic(needs, plan.sharding, machine.devices, passes);
  const double gather = exchange_seconds(machine, sent.gathered_bytes);
  const double scatter = exchange_seconds(machine, sent.scattered_bytes);
  const double latency = latency_seconds(machine, sent.messages);
  plan.sent_bytes = sent.sent_bytes(machine.devices);
  plan.communication_seconds = gather + scatter + latency;
  // fsdp sends beside all computation. Otherwise gradients are whole only in the backward of the last pass; what is
  // gathered of sums goes on beside it too, updated weights come after it.
  const double beside = plan.sharding == Sharding::fsdp ? plan.compute_seconds : backward / passes;
  const double after = plan.sharding == Sharding::optimizer ? gather : 0;
  const double hideable = plan.communication_seconds - latency - after;
  plan.exposed_seconds = plan.communication_seconds - std::min(hideable, machine.overlap * beside);
  plan.step_seconds = plan.compute_seconds + plan.update_seconds + plan.exposed_seconds;
}

}  // namespace

int64_t samples_of_device(const RunNeeds& needs, const Machine& machine) {
  const auto text = [](int64_t number) { return std::to_string(number); };
  if (machine.devices > needs.batch) {
    throw UsageError("devices: expected at most " + text(needs.batch) +
                     ", one sample of a step for each (train.batch), got " + text(machine.devices));
  }
  if (machine.devices % machine.nodes != 0) {
    throw UsageError("nodes: expected a divisor of the devices (" + text(machine.devices) + "), got " +
                     text(machine.nodes));
  }
  return (needs.batch + machine.devices - 1) / machine.devices;
}

Saving saving(const RunNeeds& needs, const Machine& machine) {
  return saving(machine, kFloatBytes * (needs.weights + needs.moments + needs.averages));
}

std::vector<Plan> plans(const RunNeeds& needs, const Machine& machine) {
  constexpr double kSecondsADay = 86400, kHoursADay = 24;
  const double kept_share = 1 - saving(needs, machine).lost_share;
  std::vector<Plan> result;
  for (const Sharding sharding : {Sharding::none, Sharding::optimizer, Sharding::fsdp}) {
    if (machine.devices == 1 && sharding != Sharding::none) continue;  // nobody to share with
    for (const bool recompute : {false, true}) {
      Plan& plan = result.emplace_back(Plan{.sharding = sharding, .recompute = recompute});
      add_memory(needs, machine, plan);
      add_time(needs, machine, plan);
      plan.days = static_cast<double>(needs.steps) * plan.step_seconds / kSecondsADay / kept_share;
      plan.price = plan.days * kHoursADay * static_cast<double>(machine.devices) * machine.price_each_device_hour;
    }
  }
  return result;
}

}  // namespace siamese::plan
