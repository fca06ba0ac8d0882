// Who made the runs of a page: programs, machines, times and commands as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "siamese/report/run_record.h"

namespace siamese::report {

// One object for each stretch of a run (runs/provenance.h).
nlohmann::json stretches_object(const RunRecord& run);

}  // namespace siamese::report
