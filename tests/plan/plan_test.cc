#include "siamese/plan/plan.h"

#include <gtest/gtest.h>

#include "siamese/base/check.h"

namespace siamese::plan {
namespace {

RunNeeds run() {
  RunNeeds needs;
  needs.weights = 100;
  needs.trained = 100;
  needs.moments = 200;
  needs.largest_block = 20;
  needs.outside_blocks = 20;
  needs.blocks = 4;
  needs.batch = 32;
  needs.steps = 1000;
  needs.forward_flops_each_sample = 100;
  needs.kept = {.fixed = 10, .each_row = 100};
  needs.recomputed = {.fixed = 10, .each_row = 20};
  return needs;
}

// 4 devices in 2 nodes; 8 samples each.
Machine machine() {
  Machine found;
  found.devices = 4;
  found.nodes = 2;
  found.memory_bytes = 4000;
  found.usable = 0.5;
  found.flops_each_second = 1000;
  found.utilization = 0.5;
  found.memory_bytes_each_second = 4000;
  found.node_link_bytes_each_second = 1000;
  found.link_bytes_each_second = 100;
  found.latency_seconds = 0;
  found.overlap = 0;
  found.price_each_device_hour = 3;
  return found;
}

const Plan& of(const std::vector<Plan>& all, Sharding sharding, bool recompute) {
  for (const Plan& plan : all) {
    if (plan.sharding == sharding && plan.recompute == recompute) return plan;
  }
  throw std::logic_error("no such plan");
}

TEST(Plan, TheLargestMicroBatchFillsTheRoomThatStateLeaves) {
  const auto all = plans(run(), machine());
  ASSERT_EQ(all.size(), 6u);
  // Of 2000 bytes: weights 400, gradients 400, moments 800; 400 are left.
  const Plan& kept = of(all, Sharding::none, false);
  EXPECT_EQ(kept.largest_micro_batch, 3);
  EXPECT_EQ(kept.micro_batch, 3);
  EXPECT_TRUE(kept.fits);
  EXPECT_EQ(kept.bytes.activations, 310);
  EXPECT_EQ(of(all, Sharding::none, true).largest_micro_batch, 8) << "all samples of the device";
  EXPECT_EQ(of(all, Sharding::optimizer, false).largest_micro_batch, 8) << "1000 are left";
  Machine small = machine();
  small.memory_bytes = 3300;  // 1650 usable: 50 for activations
  EXPECT_EQ(of(plans(run(), small), Sharding::none, false).largest_micro_batch, 0);
  EXPECT_FALSE(of(plans(run(), small), Sharding::none, false).fits);
  EXPECT_EQ(of(plans(run(), small), Sharding::none, true).largest_micro_batch, 2);
}

TEST(Plan, OfAGivenMicroBatch) {
  RunNeeds needs = run();
  needs.micro_batch = 4;
  const auto all = plans(needs, machine());
  EXPECT_EQ(of(all, Sharding::none, false).micro_batch, 4);
  EXPECT_FALSE(of(all, Sharding::none, false).fits);
  EXPECT_TRUE(of(all, Sharding::none, true).fits);
  needs.micro_batch = 100;
  EXPECT_EQ(of(plans(needs, machine()), Sharding::none, true).micro_batch, 8);
}

TEST(Plan, TimeOfAStep) {
  const auto all = plans(run(), machine());
  const Plan& kept = of(all, Sharding::none, false);
  EXPECT_DOUBLE_EQ(kept.compute_seconds, 3 * 8 * 100 / 500.0);
  EXPECT_DOUBLE_EQ(of(all, Sharding::none, true).compute_seconds, 4 * 8 * 100 / 500.0);
  EXPECT_DOUBLE_EQ(kept.update_seconds, 4 * (5 * 100 + 2 * 200) / 4000.0);
  EXPECT_DOUBLE_EQ(of(all, Sharding::optimizer, false).update_seconds, 0.9 / 4);
  // Twice 400 bytes: half of them in the node at 1000 bytes a second, then a quarter out of it at 100.
  EXPECT_DOUBLE_EQ(kept.communication_seconds, 2 * (0.2 + 1));
  EXPECT_DOUBLE_EQ(kept.sent_bytes, 600);
  EXPECT_DOUBLE_EQ(kept.exposed_seconds, kept.communication_seconds) << "nothing is hidden";
  EXPECT_DOUBLE_EQ(kept.step_seconds, 4.8 + 0.9 + 2.4);
  EXPECT_DOUBLE_EQ(kept.communication_share(), 2.4 / 8.1);
  EXPECT_DOUBLE_EQ(of(all, Sharding::fsdp, false).sent_bytes, 1 * 1200 * 3 / 4.0) << "one pass of 8 fits";
}

TEST(Plan, WhatComputationHides) {
  Machine all_hidden = machine();
  all_hidden.overlap = 1;
  const auto all = plans(run(), all_hidden);
  // The last of three passes has a third of backward's 3.2 s.
  EXPECT_DOUBLE_EQ(of(all, Sharding::none, false).exposed_seconds, 2.4 - 3.2 / 3);
  EXPECT_DOUBLE_EQ(of(all, Sharding::optimizer, false).exposed_seconds, 1.2) << "updated weights come after backward";
  EXPECT_DOUBLE_EQ(of(all, Sharding::fsdp, false).exposed_seconds, 0);
  all_hidden.latency_seconds = 0.01;
  EXPECT_NEAR(of(plans(run(), all_hidden), Sharding::fsdp, false).exposed_seconds, 0.01 * 2 * 15, 1e-12)
      << "latency is not hidden";
}

TEST(Plan, DaysAndPriceCountWhatIsLost) {
  const auto all = plans(run(), machine());
  const Plan& kept = of(all, Sharding::none, false);
  const double share = 1 - saving(run(), machine()).lost_share;
  EXPECT_LT(share, 1);
  EXPECT_DOUBLE_EQ(kept.days, 1000 * 8.1 / 86400 / share);
  EXPECT_DOUBLE_EQ(kept.price, kept.days * 24 * 4 * 3);
  EXPECT_EQ(saving(run(), machine()).checkpoint_bytes, 1200);
}

TEST(Plan, SamplesThatDoNotComeOutEvenGoToTheFullestDevice) {
  RunNeeds needs = run();
  needs.batch = 33;
  EXPECT_EQ(samples_of_device(needs, machine()), 9);
}

TEST(Plan, OneDeviceSharesNothing) {
  Machine one = machine();
  one.devices = one.nodes = 1;
  const auto all = plans(run(), one);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].sharding, Sharding::none);
  EXPECT_EQ(all[1].communication_seconds, 0);
}

TEST(Plan, RefusesMoreDevicesThanSamplesAndOddNodes) {
  Machine many = machine();
  many.devices = 34;
  EXPECT_THROW(plans(run(), many), UsageError);
  many.devices = 5;
  EXPECT_THROW(plans(run(), many), UsageError);
}

}  // namespace
}  // namespace siamese::plan
