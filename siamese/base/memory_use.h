// How much memory this process holds.
#pragma once

namespace siamese {

struct MemoryUse {
  double resident_mb = 0;  // now
  double peak_mb = 0;      // since the process started
};

// In MB of 2^20 bytes; 0 where the system does not say (/proc/self/status).
MemoryUse memory_use();

}  // namespace siamese
