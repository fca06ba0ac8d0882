// What metrics.jsonl and eval.jsonl say, for TensorBoard: RUN/events.out.tfevents.<seconds>.siamese (io/tensorboard.h),
// a copy that can be made again at any time. The time of a step is when its stretch of the run started, plus the time
// that the steps of the stretch took up to it: so the same lines give the same bytes, whenever they are written.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "siamese/io/appended_file.h"
#include "siamese/runs/eval_record.h"
#include "siamese/runs/provenance.h"
#include "siamese/runs/step_record.h"

namespace siamese::runs {

// By tag, the finite ones:
//   train/loss, train/lr ... every number of the line
//   depth_grad_norm/site007_attention, depth_branch_in/..., depth_branch_out/..., and of each stream
//   depth_X_before/..., depth_X_after/...
NamedNumbers scalars_of(const StepRecord& record);
//   eval/loss, eval/perplexity ... every measure, and eval/<held-out set>/loss ...
NamedNumbers scalars_of(const EvalRecord& record);

// Whether a name in a run directory is that of such a file.
bool is_event_file(std::string_view name);

class EventFile {
 public:
  // A file in `folder` with all that the lines of `run_dir` say so far, written aside and renamed; earlier ones of ours
  // in `folder` are removed once it stands. A new name at every start, because a TensorBoard that is looking on reads
  // a name once and goes on to the next. Lines that cannot be read are left out.
  EventFile(const std::filesystem::path& run_dir, const std::filesystem::path& folder,
            const std::vector<Stretch>& stretches);

  // One more line of metrics.jsonl or eval.jsonl, as it stands there. SystemError when it cannot be written.
  void add_step(std::string_view line);
  void add_eval(std::string_view line);

  const std::filesystem::path& path() const { return path_; }

 private:
  // When each step was made, in seconds; steps come in order.
  class Clock {
   public:
    explicit Clock(const std::vector<Stretch>& stretches);
    double started() const { return starts_.empty() ? 0 : starts_.back().seconds; }
    double after(const StepRecord& record);
    double now() const { return now_; }

   private:
    struct Start {
      int64_t from_step;
      double seconds;
    };
    std::vector<Start> starts_;
    size_t at_ = 0;
    double now_ = 0;
  };

  static std::string all_events(const std::filesystem::path& run_dir, Clock& clock);

  Clock clock_;
  std::filesystem::path path_;
  std::optional<io::AppendedFile> file_;  // once it stands
};

}  // namespace siamese::runs
