// One run folder as read from disk. Reading never fails for what is missing or damaged: each such thing becomes one
// line in `notes`, which the page shows. Numbers recorded as null (non-finite) are NaN here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace siamese::report {

inline constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

enum class RunState { not_started, running, stopped, finished, diverged, unknown };

// metrics.jsonl as columns; steps strictly ascend (lines repeated after a resume replace the older ones).
struct StepColumns {
  std::vector<int64_t> step;
  std::vector<double> loss, grad_norm, lr, tokens_per_s, step_ms, tokens;
  int64_t skipped = 0;  // steps whose update was skipped
};

struct StreamRms {
  std::string name;
  double before = kMissing;
  double after = kMissing;  // missing when the stream has no norm of its own at the site
};

struct SiteRow {
  int64_t block = 0;
  std::string kind;
  double grad_norm = kMissing, branch_in = kMissing, branch_out = kMissing;
  std::vector<StreamRms> streams;
};

struct SiteSnapshot {
  int64_t step = 0;
  std::vector<SiteRow> sites;
};

struct AccuracyGroup {
  std::string operation;
  int64_t digits = 0;
  int64_t correct = 0, count = 0;
};

struct EvalRow {
  int64_t step = 0;
  double loss = kMissing;
  int64_t correct = 0, count = 0;  // count 0: no accuracy was measured
  std::vector<AccuracyGroup> groups;
  double accuracy() const;
};

// What a record line says of the whole run; its columns are means over stretches of steps, each named by its last.
struct RecordedNumbers {
  double first_loss = kMissing, train_loss = kMissing, tokens_per_s = kMissing, seconds = kMissing;
};

struct RunRecord {
  // Which run this is: from sweep.json, or from run.json when the run stands alone.
  std::string dir;
  std::string variant;
  double lr = kMissing;
  int64_t seed = -1;  // -1: not known

  RunState state = RunState::not_started;
  bool stuck = false;  // `diverged` by the rule of mark_stuck (aggregate.h), though every number was finite
  std::string scheme, label, message;
  int64_t step = 0, steps = 0, parameters = 0;

  StepColumns metrics;
  std::optional<RecordedNumbers> recorded;  // a run known by its record line only
  std::vector<SiteSnapshot> snapshots;
  std::vector<EvalRow> evals;
  std::string config_text;
  std::vector<std::pair<std::string, std::string>> config;  // ("optim.lr", "0.002"), in file order
  std::vector<std::string> notes;

  // What the tables show; NaN when nothing was recorded.
  double first_loss() const;           // of step 1
  double final_val_loss() const;       // last evaluation
  double final_accuracy() const;       // last evaluation that measured it
  double final_train_loss() const;     // mean of the last 50 steps
  double median_tokens_per_s() const;  // without the first step, which pays for warm-up
  double seconds() const;              // sum of step times
  const EvalRow* last_accuracy() const;
};

std::string_view state_text(RunState state);
RunState state_from_text(std::string_view text);  // what is not a state is `unknown`

}  // namespace siamese::report
