// The recorded profiles of a run as JSON, columns by site; null when there are none.
//   {steps, sites: [{block, kind}], streams: [name], rows: [{grad, in, out, before: [[..]], after: [[..]]}]}
#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "siamese/report/run_record.h"

namespace siamese::report {

nlohmann::json depth_profiles(const std::vector<SiteSnapshot>& snapshots);

}  // namespace siamese::report
