// The formulas with numbers that can be followed by hand.
#include "siamese/plan/sharding.h"

#include <gtest/gtest.h>

namespace siamese::plan {
namespace {

// 100 weights, 90 of them trained by AdamW; 4 blocks of 20 and 20 outside.
RunNeeds small() {
  RunNeeds needs;
  needs.weights = 100;
  needs.trained = 90;
  needs.moments = 180;
  needs.largest_block = 20;
  needs.outside_blocks = 20;
  needs.blocks = 4;
  return needs;
}

TEST(Sharding, EveryDeviceHoldsEverythingInDataParallel) {
  const DeviceBytes bytes = device_bytes(small(), Sharding::none, 8, 1000);
  EXPECT_EQ(bytes.weights, 400);
  EXPECT_EQ(bytes.gradients, 360);
  EXPECT_EQ(bytes.moments, 720);
  EXPECT_EQ(bytes.gathered, 0);
  EXPECT_EQ(bytes.total(), 2480);
}

TEST(Sharding, OptimizerSharesOutTheMomentsAlone) {
  const DeviceBytes bytes = device_bytes(small(), Sharding::optimizer, 8, 1000);
  EXPECT_EQ(bytes.weights, 400);
  EXPECT_EQ(bytes.gradients, 360);
  EXPECT_EQ(bytes.moments, 90);
  EXPECT_EQ(bytes.total(), 1850);
}

TEST(Sharding, FsdpSharesOutAllAndGathersTwoBlocks) {
  const DeviceBytes bytes = device_bytes(small(), Sharding::fsdp, 8, 1000);
  EXPECT_EQ(bytes.weights, 50);
  EXPECT_EQ(bytes.gradients, 45);
  EXPECT_EQ(bytes.moments, 90);
  EXPECT_EQ(bytes.gathered, 4 * (20 + 2 * 20) + 4 * 20);
  EXPECT_EQ(bytes.activations, 1000);
}

TEST(Sharding, OneDeviceSharesNothing) {
  for (const Sharding sharding : {Sharding::none, Sharding::optimizer, Sharding::fsdp}) {
    EXPECT_EQ(device_bytes(small(), sharding, 1, 0).total(), 1480) << enum_text(sharding);
    EXPECT_EQ(traffic(small(), sharding, 1, 3).sent_bytes(1), 0) << enum_text(sharding);
  }
}

// What a checkpoint holds, each device the part that it writes.
TEST(Sharding, ACopyToSave) {
  RunNeeds needs = small();
  needs.averages = 100;
  EXPECT_EQ(device_bytes(needs, Sharding::none, 4, 0).saving, 0);
  needs.copies_to_save = true;
  for (const Sharding sharding : {Sharding::none, Sharding::optimizer, Sharding::fsdp}) {
    const DeviceBytes bytes = device_bytes(needs, sharding, 4, 0);
    EXPECT_EQ(bytes.saving, 4 * (100 + 180 + 100) / 4) << enum_text(sharding);
    needs.copies_to_save = false;
    EXPECT_EQ(bytes.total(), device_bytes(needs, sharding, 4, 0).total() + bytes.saving) << enum_text(sharding);
    needs.copies_to_save = true;
  }
}

TEST(Sharding, AveragesAndRoundedCopiesAreWeights) {
  RunNeeds needs = small();
  needs.averages = 100;
  needs.rounded_weight_bytes = 160;
  needs.operand_bytes = 2;
  EXPECT_EQ(device_bytes(needs, Sharding::none, 4, 0).weights, 960);
  EXPECT_EQ(device_bytes(needs, Sharding::fsdp, 4, 0).weights, 200) << "gathered instead";
  EXPECT_EQ(device_bytes(needs, Sharding::fsdp, 4, 0).gathered, 2 * 60 + 4 * 20);
}

// Of 60 weights that are read rounded a device has 2 bytes and a quarter of the 4, and the others send 2 bytes.
TEST(Sharding, OptimizerSharesOutWhatIsReadRounded) {
  RunNeeds needs = small();
  needs.rounded_weight_bytes = 160;
  needs.operand_bytes = 2;
  needs.read_rounded = 60;
  EXPECT_EQ(device_bytes(needs, Sharding::none, 4, 0).weights, 560);
  EXPECT_EQ(device_bytes(needs, Sharding::optimizer, 4, 0).weights, 160 + 4 * 40 + 4 * 60 / 4);
  EXPECT_EQ(device_bytes(needs, Sharding::optimizer, 1, 0).weights, 560);
  EXPECT_EQ(traffic(needs, Sharding::none, 4, 1).sent_bytes(4), 2 * 360 * 3 / 4.0);
  EXPECT_EQ(traffic(needs, Sharding::optimizer, 4, 1).sent_bytes(4), (360 + 4 * 30 + 2 * 60) * 3 / 4.0);
  needs.averages = 100;
  EXPECT_EQ(device_bytes(needs, Sharding::optimizer, 4, 0).weights, 160 + 2 * (4 * 40 + 4 * 60 / 4));
}

TEST(Traffic, OfAStep) {
  EXPECT_EQ(traffic(small(), Sharding::none, 4, 5).sent_bytes(4), 2 * 360 * 3 / 4.0) << "whatever the passes";
  EXPECT_EQ(traffic(small(), Sharding::optimizer, 4, 5).sent_bytes(4), 2 * 360 * 3 / 4.0);
  const Traffic fsdp = traffic(small(), Sharding::fsdp, 4, 5);
  EXPECT_EQ(fsdp.sent_bytes(4), 5 * (2 * 400 + 360) * 3 / 4.0);
  EXPECT_EQ(fsdp.messages, 5 * 3 * 5);
}

TEST(Exchange, InANodeAndBetweenNodes) {
  Machine machine;
  machine.node_link_bytes_each_second = 100;
  machine.link_bytes_each_second = 10;
  machine.devices = 4;
  EXPECT_DOUBLE_EQ(exchange_seconds(machine, 1000), 7.5);
  machine.nodes = 4;
  EXPECT_DOUBLE_EQ(exchange_seconds(machine, 1000), 75);
  machine.nodes = 2;
  EXPECT_DOUBLE_EQ(exchange_seconds(machine, 1000), 5 + 25);
}

TEST(Exchange, LatencyGrowsWithTheLogarithm) {
  Machine machine;
  machine.latency_seconds = 0.5;
  EXPECT_EQ(latency_seconds(machine, 3), 0);
  machine.devices = 8;
  EXPECT_EQ(latency_seconds(machine, 3), 4.5);
  machine.devices = 9;
  EXPECT_EQ(latency_seconds(machine, 3), 6);
}

}  // namespace
}  // namespace siamese::plan
