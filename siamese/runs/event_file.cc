#include "siamese/runs/event_file.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>

#include <fmt/format.h>

#include "siamese/base/path_kind.h"
#include "siamese/base/utf8.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/message.h"
#include "siamese/io/run_dir.h"
#include "siamese/io/tensorboard.h"
#include "siamese/runs/lines.h"

namespace siamese::runs {
namespace fs = std::filesystem;

namespace event_file_detail {

constexpr std::string_view kBegin = "events.out.tfevents.", kEnd = ".siamese";

// Finite numbers under tags that are valid UTF-8, whatever a file put into a name.
class Scalars {
 public:
  void add(const std::string& tag, double value) {
    if (std::isfinite(value)) all_.emplace_back(printable(tag), value);
  }
  NamedNumbers take() { return std::move(all_); }

 private:
  NamedNumbers all_;
};

// "2026-11-17T11:22:33Z" as seconds since 1970; 0 for any other text.
double seconds_of_utc(const std::string& text) {
  std::tm when{};
  if (text.size() != 20 || ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &when) == nullptr) return 0;
  return static_cast<double>(::timegm(&when));
}

std::string name_at(double seconds) { return fmt::format("{}{:010.0f}{}", kBegin, std::max(0.0, seconds), kEnd); }

void remove_others(const fs::path& folder, const fs::path& stays) {
  for (const fs::path& entry : folder_entries(folder)) {
    if (entry.filename() == stays.filename() || !is_event_file(entry.filename().string())) continue;
    std::error_code error;
    if (fs::is_regular_file(fs::symlink_status(entry, error))) fs::remove(entry, error);
    if (error) io::throw_system_error("remove", entry, error.value());
  }
}

}  // namespace event_file_detail

NamedNumbers scalars_of(const StepRecord& record) {
  event_file_detail::Scalars scalars;
  scalars.add("train/loss", record.loss);
  scalars.add("train/grad_norm", record.grad_norm);
  scalars.add("train/lr", record.lr);
  scalars.add("train/tokens", static_cast<double>(record.tokens));
  scalars.add("train/tokens_per_s", record.tokens_per_s);
  scalars.add("train/samples_per_s", record.samples_per_s);
  scalars.add("train/step_ms", record.step_ms);
  scalars.add("train/skipped", record.skipped ? 1 : kNone);
  for (const auto& [name, value] : record.extra) scalars.add("train/" + name, value);
  for (const SiteRecord& site : record.sites) {
    const std::string where = fmt::format("/site{:03}_{}", site.site, site.kind);
    scalars.add("depth_grad_norm" + where, site.grad_norm);
    scalars.add("depth_branch_in" + where, site.branch_in);
    scalars.add("depth_branch_out" + where, site.branch_out);
    for (const StreamRecord& stream : site.streams) {
      scalars.add("depth_" + stream.name + "_before" + where, stream.before);
      scalars.add("depth_" + stream.name + "_after" + where, stream.after);
    }
  }
  return scalars.take();
}

NamedNumbers scalars_of(const EvalRecord& record) {
  event_file_detail::Scalars scalars;
  scalars.add("eval/loss", record.loss);
  scalars.add("eval/perplexity", record.perplexity);
  scalars.add("eval/bits_per_byte", record.bits_per_byte);
  scalars.add("eval/baseline", record.baseline);
  if (record.accuracy && record.accuracy->count > 0) {
    const Answers answers{record.accuracy->correct, record.accuracy->count};
    scalars.add("eval/accuracy", answers.share());
  }
  for (const auto& [name, value] : record.measures()) {
    if (!is_text_loss(name)) scalars.add("eval/" + name, value);  // those have tags of their own
  }
  for (const HeldOutSetRecord& set : record.sets) {
    scalars.add("eval/" + set.name + "/loss", set.loss);
    scalars.add("eval/" + set.name + "/perplexity", set.perplexity);
    scalars.add("eval/" + set.name + "/bits_per_byte", set.bits_per_byte);
  }
  return scalars.take();
}

bool is_event_file(std::string_view name) {
  using namespace event_file_detail;
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd) || name.size() <= kBegin.size() + kEnd.size()) return false;
  const std::string_view digits = name.substr(kBegin.size(), name.size() - kBegin.size() - kEnd.size());
  return digits.find_first_not_of("0123456789") == std::string_view::npos;
}

EventFile::Clock::Clock(const std::vector<Stretch>& stretches) {
  for (const Stretch& stretch : stretches) {
    // Steps after this one were made again by it.
    while (!starts_.empty() && starts_.back().from_step >= stretch.from_step) starts_.pop_back();
    starts_.push_back({stretch.from_step, event_file_detail::seconds_of_utc(stretch.started)});
  }
  if (!starts_.empty()) now_ = starts_.front().seconds;
}

double EventFile::Clock::after(const StepRecord& record) {
  for (; at_ + 1 < starts_.size() && starts_[at_ + 1].from_step < record.step; ++at_) now_ = starts_[at_ + 1].seconds;
  if (std::isfinite(record.step_ms)) now_ += record.step_ms / 1000;
  return now_;
}

std::string EventFile::all_events(const fs::path& run_dir, Clock& clock) {
  Notes unreadable;  // the run itself says so
  std::vector<EvalRecord> evals;
  for_each_line(
      run_dir / io::kEvalFile,
      [&](std::string_view line, const std::string& where, Notes* notes) {
        evals.push_back(read_eval(line, where, notes));
      },
      &unreadable);
  std::string events = io::first_events(clock.now(), 0);
  size_t next = 0;
  const auto add_evals_before = [&](int64_t step) {
    for (; next < evals.size() && evals[next].step < step; ++next) {
      events += io::scalar_event(clock.now(), evals[next].step, scalars_of(evals[next]));
    }
  };
  for_each_line(
      run_dir / io::kMetricsFile,
      [&](std::string_view line, const std::string& where, Notes* notes) {
        const StepRecord record = read_step(line, where, notes);
        add_evals_before(record.step);
        const double when = clock.after(record);
        events += io::scalar_event(when, record.step, scalars_of(record));
      },
      &unreadable);
  add_evals_before(std::numeric_limits<int64_t>::max());
  return events;
}

EventFile::EventFile(const fs::path& run_dir, const fs::path& folder, const std::vector<Stretch>& stretches)
    : clock_(stretches), path_(folder / event_file_detail::name_at(clock_.started())) {
  io::write_file_atomic(path_, all_events(run_dir, clock_));
  event_file_detail::remove_others(folder, path_);
  file_.emplace(path_);
}

void EventFile::add_step(std::string_view line) {
  const StepRecord record = read_step(line, std::string(io::kMetricsFile));
  const double when = clock_.after(record);
  file_->write(io::scalar_event(when, record.step, scalars_of(record)));
}

void EventFile::add_eval(std::string_view line) {
  const EvalRecord record = read_eval(line, std::string(io::kEvalFile));
  file_->write(io::scalar_event(clock_.now(), record.step, scalars_of(record)));
}

}  // namespace siamese::runs
