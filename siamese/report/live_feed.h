// What a live page is told of a run (docs/watch.md): its facts whenever anything changed, and of its curves what is
// new.
//   {"id", "name", "variant", "family", "lr", "seed", "state", "step", "steps", ..., "alerts": [{"kind", "step",
//   "text"}],
//    "curve": {"width", "from", "loss": [], "low": [], "high": [], "grad": [], "grad_high": []},
//    "evals": {"from", "step": [], "loss": [], "accuracy": []}}
// A reader cuts its lists at `from` and appends; from 0 on everything is new, the width too. Where a bucket is one step
// its extremes are its value and are left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "siamese/report/live_runs.h"

namespace siamese::report {

inline constexpr size_t kRunsPerMessage = 50;  // so that a message is a megabyte at most

nlohmann::json run_news(uint64_t id, const LiveRun& run, SeenRun& seen);

// As text in ASCII, whatever bytes a name holds.
std::string json_message(const nlohmann::json& message);

}  // namespace siamese::report
