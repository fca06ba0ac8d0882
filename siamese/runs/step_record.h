// One line of metrics.jsonl (docs/run-directory.md). Numbers that were null or not written are NaN.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "siamese/runs/notes.h"
#include "siamese/runs/numbers.h"

namespace siamese::runs {

struct StreamRecord {
  std::string name;
  double before = kNone;
  double after = kNone;  // none: the stream has no norm of its own there
};

// Root mean squares at one site.
struct SiteRecord {
  int64_t site = 0;
  int64_t block = 0;
  std::string kind;
  double grad_norm = kNone, branch_in = kNone, branch_out = kNone;
  std::vector<StreamRecord> streams;
};

// Share of the routed tokens that each expert of a block got.
struct ExpertRecord {
  int64_t block = 0;
  std::vector<double> load;
};

struct StepRecord {
  int64_t step = 0;  // the first is 1
  int64_t tokens = 0;
  double loss = kNone, grad_norm = kNone, lr = kNone;
  double tokens_per_s = kNone, samples_per_s = kNone, step_ms = kNone;
  bool skipped = false;
  std::string skip_reason;  // of a skipped step: non_finite, loss, grad_norm; "" in old files: non_finite
  double skip_z = kNone;
  NamedNumbers extra;  // every other number of the line: balance_loss, mse, ...
  std::vector<ExpertRecord> experts;
  std::vector<SiteRecord> sites;
};

std::string to_line(const StepRecord& record);
// `where` names the line in errors ("metrics.jsonl: line 3").
StepRecord read_step(std::string_view line, const std::string& where, Notes* notes = nullptr);

}  // namespace siamese::runs
