// The recorded profiles of a run, as many as a page can hold: evenly spread over its steps, and always the newest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "siamese/report/downsample.h"
#include "siamese/report/run_record.h"

namespace siamese::report {

inline constexpr int64_t kSnapshotLimit = 60;      // recorded profiles kept per run, evenly spread
inline constexpr size_t kStreamLimit = 64;         // names of streams in a run; a scheme has at most 16
inline constexpr size_t kExpertLimit = 128 * 128;  // loads of one step, blocks x experts: past it a page gets too large

class Snapshots {
 public:
  void take(runs::StepRecord&& record);  // one without a profile changes nothing
  void forget_from(int64_t step);        // a resumed run writes some steps again

  std::vector<SiteSnapshot> list() const;
  int64_t recorded() const { return recorded_; }  // all that came, also those that were thinned away
  // What was left out, one line each, without the file's name.
  std::vector<std::string> notes() const;

 private:
  std::vector<SiteSnapshot> kept_;
  // The last profile is the one people look at first (where did it blow up?): it is never thinned away.
  std::optional<SiteSnapshot> newest_;
  Thinning thinning_{kSnapshotLimit};
  int64_t recorded_ = 0;
  std::set<std::string> stream_names_;
  bool streams_dropped_ = false, experts_dropped_ = false;
};

}  // namespace siamese::report
