// One line of the record of a sweep, and of recorded.jsonl (docs/run-directory.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "siamese/config/value.h"
#include "siamese/runs/data_key.h"
#include "siamese/runs/notes.h"
#include "siamese/runs/provenance.h"
#include "siamese/runs/summary.h"

namespace siamese::runs {

struct RecordLine {
  std::string sweep, dir, variant, scheme;
  double lr = kNone;
  uint64_t seed = 0;
  config::Texts config;  // resolved, the keys that decide a result
  DataKey data;          // empty: made by the engine, or a line of schema 1
  RunSummary summary;
  std::vector<Stretch> stretches;  // joined(); of schema 1 one, with what those lines say
};

std::string to_line(const RecordLine& line);
// `where` names the line in a DataError ("stability.jsonl: line 3").
RecordLine read_record_line(std::string_view text, const std::string& where);

}  // namespace siamese::runs
