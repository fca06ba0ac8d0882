#include "siamese/train/sweep_record.h"

#include <algorithm>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/config/fields.h"
#include "siamese/config/yaml.h"
#include "siamese/data/identity.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/directory_lock.h"
#include "siamese/io/run_dir.h"
#include "siamese/train/provenance.h"
#include "siamese/train/record_facts.h"

namespace siamese::train {
namespace fs = std::filesystem;
namespace {

// The config of a line as today's program understands it: read strictly, the keys it lacks at their defaults (also the
// derived ones). Empty when it has a key or value that exists no more.
ConfigTexts resolve(const ConfigTexts& recorded) {
  try {
    config::Value root = config::Value::map();
    for (const auto& [key, text] : recorded) config::set_path(root, key, config::parse_yaml(text, key));
    return result_config(read_config(config::in_layer(std::move(root), config::kStoredLayer)));
  } catch (const UsageError&) {
    return {};
  }
}

}  // namespace

runs::RecordLine record_line(const std::string& sweep, const PlannedRun& run, const fs::path& run_dir) {
  const runs::RunInfo info = runs::read_run_file(run_dir).value_or(runs::RunInfo{});
  return {.sweep = sweep,
          .dir = run.dir,
          .variant = run.variant,
          .scheme = run.config.model.residual,
          .lr = run.config.optim.lr,
          .seed = run.config.train.seed,
          .config = result_config(run.config),
          .data = info.data,
          .summary = runs::summarise_run(run_dir),
          .stretches = runs::joined(info.stretches)};
}

bool is_of_this_build(const std::vector<runs::Stretch>& stretches) {
  const auto builds = runs::builds_of(stretches);
  return builds.size() == 1 && builds.front() == this_build();
}

bool is_of_this_build(const fs::path& run_dir) {
  runs::Notes notes;
  const auto info = runs::read_run_file(run_dir, &notes);
  return info && is_of_this_build(info->stretches);
}

const runs::DataKey& DataKeys::of(const RunConfig& planned) {
  const std::string section = config::to_yaml(config::print(planned.data));
  const auto found = known_.find(section);
  if (found != known_.end()) return found->second;
  runs::DataKey key;
  try {
    key = data_key(data::identity_of(planned.data));
  } catch (const DataError&) {  // not here: then the paths count
  }
  return known_.emplace(section, key).first->second;
}

SweepRecord::SweepRecord(fs::path file, Lines lines) : file_(std::move(file)), lines_(lines) {
  // The file is replaced as a whole: behind a link that has to be the one it leads to.
  std::error_code error;
  if (fs::is_symlink(file_, error)) file_ = fs::weakly_canonical(file_, error);
  refresh();
}

void SweepRecord::check_writable() const {
  const fs::path folder = io::folder_of(file_);
  io::make_directory(folder);
  const bool file_allows = !is_taken(file_) || access(file_.c_str(), W_OK) == 0;
  if (access(folder.c_str(), W_OK) != 0 || !file_allows) {
    throw SystemError(file_.string() + ": the record of the sweep cannot be written: no permission");
  }
}

SweepRecord::Stamp SweepRecord::stamp() const {
  struct stat about {};
  if (::stat(file_.c_str(), &about) != 0) return {};
  constexpr int64_t kNanoseconds = 1'000'000'000;
  return {about.st_dev, about.st_ino, static_cast<uint64_t>(about.st_size),
          about.st_mtim.tv_sec * kNanoseconds + about.st_mtim.tv_nsec};
}

void SweepRecord::refresh() {
  const Stamp now = stamp();  // before it is read: a later change is then seen next time
  if (now == stamp_ && stamp_ != Stamp{}) return;
  std::string text = is_taken(file_) ? io::read_file(file_) : "";
  if (text != text_) take(std::move(text));
  stamp_ = now;
}

void SweepRecord::take(std::string text) {
  struct Row {
    runs::RecordLine line;
    size_t from, size;
  };
  std::vector<Row> rows;  // all of them first: a line that cannot be understood leaves what was known
  size_t number = 0;
  for (size_t from = 0; from < text.size();) {
    const size_t begin = from, end = std::min(text.find('\n', from), text.size());
    const std::string_view row(text.data() + begin, end - begin);
    ++number;
    from = end + 1;
    if (row.find_first_not_of(" \r") == std::string_view::npos) continue;  // left by an editor
    rows.push_back({runs::read_record_line(row, fmt::format("{}: line {}", file_.string(), number)), begin,
                    std::min(from, text.size()) - begin});
  }
  entries_.clear();
  by_config_.clear();
  for (Row& row : rows) keep(std::move(row.line), row.from, row.size);
  text_ = std::move(text);
}

void SweepRecord::keep(runs::RecordLine line, size_t from, size_t size) {
  Key key = key_of(resolve(line.config), line.data);
  const bool counts = lines_ == Lines::all || is_of_this_build(line.stretches);
  if (!key.config.empty()) by_config_[key.config].push_back(entries_.size());
  entries_.push_back({std::move(line), std::move(key), counts, from, size});
}

SweepRecord::Key SweepRecord::key_of(const ConfigTexts& resolved, const runs::DataKey& data) {
  Key key{"", "", data};
  for (const auto& [name, text] : resolved) (tells_where(name) ? key.places : key.config) += name + "=" + text + "\n";
  return key;
}

std::vector<const SweepRecord::Entry*> SweepRecord::entries_about(const Key& key) const {
  std::vector<const Entry*> found;
  const auto alike = by_config_.find(key.config);
  if (alike == by_config_.end()) return found;
  for (const size_t index : alike->second) {
    const Key& of = entries_[index].key;
    const bool known = !of.data.empty() && !key.data.empty();
    if (known ? of.data == key.data : of.places == key.places) found.push_back(&entries_[index]);
  }
  return found;
}

const SweepRecord::Entry* SweepRecord::counted_about(const Key& key) const {
  for (const Entry* const entry : entries_about(key)) {
    if (entry->counts) return entry;
  }
  return nullptr;
}

std::vector<runs::RecordLine> SweepRecord::lines() {
  refresh();
  std::vector<runs::RecordLine> lines;
  for (const Entry& entry : entries_) {
    if (entry.counts) lines.push_back(entry.line);
  }
  return lines;
}

std::optional<runs::RecordLine> SweepRecord::find(const RunConfig& planned) {
  refresh();
  const Entry* const entry = counted_about(key_of(result_config(planned), data_.of(planned)));
  if (entry == nullptr) return std::nullopt;
  runs::RecordLine line = entry->line;
  fill_in_facts(planned, line);
  return line;
}

void SweepRecord::add(const runs::RecordLine& line) {
  check_writable();
  const io::DirectoryLock lock(io::folder_of(file_), io::DirectoryLock::WhenHeld::wait);
  refresh();
  const Key key = key_of(resolve(line.config), line.data);
  if (counted_about(key) != nullptr) return;
  std::string text = text_;
  if (!text.empty() && text.back() != '\n') text += '\n';  // edited by hand
  const auto outdated = entries_about(key);                // those that count for nothing
  for (auto entry = outdated.rbegin(); entry != outdated.rend(); ++entry) text.erase((*entry)->from, (*entry)->size);
  const std::string row = runs::to_line(line) + '\n';
  text += row;
  io::write_file_atomic(file_, text);
  if (outdated.empty()) {
    keep(line, text.size() - row.size(), row.size());
    text_ = std::move(text);
  } else {
    take(std::move(text));
  }
  stamp_ = stamp();  // under the lock: the file is the one just written
}

}  // namespace siamese::train
