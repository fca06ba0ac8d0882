#include "siamese/report/page_provenance.h"

#include <nlohmann/json.hpp>

namespace siamese::report {

nlohmann::json stretches_object(const RunRecord& run) {
  auto list = nlohmann::json::array();
  for (const runs::Stretch& stretch : run.stretches) {
    list.push_back({{"build", stretch.build.text()},
                    {"cpu", stretch.cpu},
                    {"simd", stretch.simd},
                    {"precision", stretch.precision},
                    {"device", stretch.device},
                    {"threads", stretch.threads},
                    {"ranks", stretch.ranks},
                    {"command", stretch.command},
                    {"started", stretch.started},
                    {"ended", stretch.ended},
                    {"from", stretch.from_step},
                    {"to", stretch.to_step}});
  }
  return list;
}

}  // namespace siamese::report
