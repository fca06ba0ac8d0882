// Which configuration keys differ between runs: the columns of "what differs".
#pragma once

#include <string>
#include <vector>

#include "siamese/report/run_record.h"

namespace siamese::report {

struct ConfigDifference {
  std::string key;                  // "optim.lr"
  std::vector<std::string> values;  // one per run; "" where the run has no such key or no config at all
};

// Keys in the order the files name them; runs without a config do not make every key differ.
std::vector<ConfigDifference> config_differences(const std::vector<RunRecord>& runs);

}  // namespace siamese::report
