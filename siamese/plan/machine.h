// What a run may run on: many equal devices in equal nodes. Rates are of one device.
#pragma once

#include <cstdint>

namespace siamese::plan {

struct Machine {
  int64_t devices = 1;
  int64_t nodes = 1;  // divides devices

  double memory_bytes = 80e9;
  double usable =
      0.9;  // share of the memory that may be filled: the rest is for kernels and for what lies unused between
  double flops_each_second = 312e12;
  double utilization = 0.4;  // share of them that a step's products reach
  double memory_bytes_each_second = 2e12;

  // That a device sends to others, and receives at the same time.
  double node_link_bytes_each_second = 300e9;  // in its own node
  double link_bytes_each_second = 25e9;        // in other nodes
  double latency_seconds = 20e-6;              // of one message
  double overlap = 1;  // share of the computation beside which communication can run that does hide it

  double price_each_device_hour = 0;

  double mean_hours_between_failures = 50'000;  // of one device with its share of everything else
  double disk_bytes_each_second = 5e9;          // that all devices together write to the shared file system
  double restart_seconds = 600;                 // from a failure to the first step after the last checkpoint

  int64_t devices_in_node() const { return devices / nodes; }
};

}  // namespace siamese::plan
