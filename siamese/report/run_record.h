// One run folder as read from disk. Reading never fails for what is missing or damaged: each such thing becomes one
// line in `notes`, which the page shows. Numbers recorded as null (non-finite) are NaN here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "siamese/runs/eval_record.h"
#include "siamese/runs/provenance.h"
#include "siamese/runs/run_info.h"
#include "siamese/runs/step_record.h"

namespace siamese::report {

inline constexpr double kMissing = runs::kNone;

enum class RunState { not_started, running, stopped, finished, diverged, unknown };

// metrics.jsonl as columns; steps strictly ascend (lines repeated after a resume replace the older ones).
struct StepColumns {
  std::vector<int64_t> step;
  std::vector<double> loss, grad_norm, lr, tokens_per_s, step_ms, tokens;
  std::vector<double> samples_per_s;
  std::vector<double> balance_loss, router_z_loss, expert_max_load;  // moe
  std::vector<double> mse, vlb;                                      // dit
  int64_t skipped = 0;                                               // steps whose update was skipped
  int64_t outliers = 0;                                              // of these, by the spike guard
};

// Every column with the key of its values in metrics.jsonl.
struct StepColumn {
  const char* key;
  std::vector<double> StepColumns::*values;
};
std::span<const StepColumn> step_columns();

using StreamRms = runs::StreamRecord;
using SiteRow = runs::SiteRecord;
using ExpertRow = runs::ExpertRecord;

struct SiteSnapshot {
  int64_t step = 0;
  std::vector<SiteRow> sites;
  std::vector<ExpertRow> experts = {};  // moe
};

using AccuracyGroup = runs::AccuracyGroup;

// What is measured beside the loss, by name: the names of measures.h and no others.
using Measures = std::map<std::string, double>;

// counts[i][j]: how many of class i were taken for class j. Square.
struct Confusion {
  std::vector<std::string> classes;  // as many as rows; numbers when the classes have no names
  std::vector<std::vector<int64_t>> counts;
};

// How the samples of an evaluation were drawn, and the picture of some of them.
struct Samples {
  int64_t count = 0, steps = 0;
  double guidance = kMissing;
  std::string sampler, classifier;
  std::string grid;  // path below the run folder; "" when there is none
  std::string png;   // the bytes of that file, once they were read (sample_grids.h)
};

struct EvalRow {
  int64_t step = 0;
  double loss = kMissing;
  int64_t correct = 0, count = 0;  // count 0: no accuracy was measured
  std::vector<AccuracyGroup> groups;
  Measures measures = {};
  std::optional<Confusion> confusion = std::nullopt;  // kept for the newest evaluation that has one
  std::optional<Samples> samples = std::nullopt;
  std::vector<runs::HeldOutSetRecord> sets = {};
  std::vector<runs::TaskRecord> tasks = {};
  std::vector<runs::PromptRecord> prompts = {};  // with what the model made of them
  double baseline = kMissing;                    // of the best constant prediction on the same targets
  double accuracy() const;
};

// What a record line says of the whole run; its columns are means over stretches of steps, each named by its last.
struct RecordedNumbers {
  double first_loss = kMissing, train_loss = kMissing, tokens_per_s = kMissing, seconds = kMissing;
  double samples_per_s = kMissing;
  Measures measures = {};
  double baseline = kMissing;
};

struct RunRecord {
  // Which run this is: from sweep.json, or from run.json when the run stands alone.
  std::string dir;
  std::string folder;  // where it was read from; "" when only a record line is known
  std::string variant;
  std::string family = "lm";  // model.family: lm, moe, vit, dit, or whatever the config says
  double lr = kMissing;
  int64_t seed = -1;  // -1: not known

  RunState state = RunState::not_started;
  bool stuck = false;          // finished, but hardly below the baseline (judgement.h)
  double progress = kMissing;  // how far from the baseline to the best run it came; missing until it is judged
  std::string scheme, label, message;
  int64_t step = 0, steps = 0, parameters = 0;
  double step_flops = kMissing;  // of one step, forward and backward

  StepColumns metrics;
  std::optional<RecordedNumbers> recorded;  // a run known by its record line only
  std::vector<SiteSnapshot> snapshots;
  std::vector<EvalRow> evals;
  std::string config_text;
  std::vector<std::pair<std::string, std::string>> config;  // ("optim.lr", "0.002"), in file order
  std::vector<std::string> notes;
  bool damaged = false;                  // something of its folder is missing here: the notes say what
  runs::DataKey data;                    // empty: made by the engine, or not known
  std::vector<runs::Stretch> stretches;  // who made it, alike neighbours joined; none: not known
  std::vector<runs::Build> builds;       // the same, the programs alone
  bool other_build = false;              // another than most runs of its collection (builds.h)

  // What the tables show; NaN when nothing was recorded.
  double first_loss() const;           // of step 1
  double final_val_loss() const;       // last evaluation
  double baseline() const;             // of the last evaluation that has one
  double final_accuracy() const;       // last evaluation that measured it
  double final_train_loss() const;     // mean of the last 50 steps
  double median_tokens_per_s() const;  // without the first step, which pays for warm-up
  double median_samples_per_s() const;
  double seconds() const;           // sum of step times
  Measures final_measures() const;  // each from the last evaluation that has it; expert_max_load as the training loss
  const EvalRow* last_accuracy() const;
  bool judges_average() const;  // evaluations are of the averaged weights (eval.averaged)
};

std::string family_of(const std::vector<std::pair<std::string, std::string>>& config);  // lm when it names none

std::string_view state_text(RunState state);
RunState state_of(runs::RunStatus status);
// By the names of measures.h and no others; the last of a name counts.
Measures measures_of(const runs::NamedNumbers& numbers);

}  // namespace siamese::report
