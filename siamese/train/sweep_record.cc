#include "siamese/train/sweep_record.h"

#include <algorithm>

#include <fmt/format.h>
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

ConfigTexts without_places(ConfigTexts config) {
  std::erase_if(config, [](const auto& entry) { return tells_where(entry.first); });
  return config;
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

void SweepRecord::refresh() {
  std::string text = is_taken(file_) ? io::read_file(file_) : "";
  if (text != text_) take(std::move(text));
}

void SweepRecord::take(std::string text) {
  std::vector<Entry> entries;
  size_t number = 0;
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find('\n', from), text.size());
    const std::string_view row(text.data() + from, end - from);
    const size_t begin = from;
    ++number;
    from = end + 1;
    if (row.find_first_not_of(" \r") == std::string_view::npos) continue;  // left by an editor
    runs::RecordLine line = runs::read_record_line(row, fmt::format("{}: line {}", file_.string(), number));
    Key key{resolve(line.config), line.data};
    entries.push_back({std::move(line), std::move(key), begin, std::min(from, text.size()) - begin});
  }
  entries_ = std::move(entries);
  text_ = std::move(text);
}

bool SweepRecord::is_about(const Key& line, const Key& run) {
  if (line.config.empty()) return false;
  if (line.data.empty() || run.data.empty()) return line.config == run.config;
  return line.data == run.data && without_places(line.config) == without_places(run.config);
}

const SweepRecord::Entry* SweepRecord::entry_about(const Key& key, bool counted) const {
  for (const Entry& entry : entries_) {
    const bool counts = lines_ == Lines::all || is_of_this_build(entry.line.stretches);
    if (counts == counted && is_about(entry.key, key)) return &entry;
  }
  return nullptr;
}

const runs::DataKey& SweepRecord::data_of(const RunConfig& planned) {
  const std::string section = config::to_yaml(config::print(planned.data));
  const auto found = data_.find(section);
  if (found != data_.end()) return found->second;
  runs::DataKey key;
  try {
    key = data_key(data::identity_of(planned.data));
  } catch (const DataError&) {  // not here: then the paths count
  }
  return data_.emplace(section, key).first->second;
}

std::optional<runs::RecordLine> SweepRecord::find(const RunConfig& planned) {
  refresh();
  const Entry* const entry = entry_about({result_config(planned), data_of(planned)}, true);
  return entry != nullptr ? std::optional(entry->line) : std::nullopt;
}

void SweepRecord::add(const runs::RecordLine& line) {
  check_writable();
  const io::DirectoryLock lock(io::folder_of(file_), io::DirectoryLock::WhenHeld::wait);
  refresh();
  const Key key{resolve(line.config), line.data};
  if (entry_about(key, true) != nullptr) return;
  std::string text = text_;
  if (!text.empty() && text.back() != '\n') text += '\n';  // edited by hand
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    if (lines_ == Lines::of_this_build && is_about(entry->key, key)) text.erase(entry->from, entry->size);
  }
  text += runs::to_line(line) + '\n';
  io::write_file_atomic(file_, text);
  take(std::move(text));
}

}  // namespace siamese::train
