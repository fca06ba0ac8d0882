#include "siamese/train/sweep_record.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/config/fields.h"
#include "siamese/config/yaml.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/directory_lock.h"
#include "siamese/io/message.h"
#include "siamese/io/run_dir.h"
#include "siamese/io/strict_json.h"

namespace siamese::train {
namespace {

using json = nlohmann::ordered_json;  // a line keeps the order of its fields
namespace fs = std::filesystem;

constexpr int kSchema = 1;

// Five digits are more than a curve shows; the numbers of the tables stay whole.
json rounded(const std::vector<double>& values) {
  auto list = json::array();
  for (const double value : values) {
    list.push_back(std::isfinite(value) ? json(std::stod(fmt::format("{:.5g}", value))) : json());
  }
  return list;
}

// Typed access to the fields of a line; what is of another type is named.
class Fields {
 public:
  Fields(const json& object, std::string where) : object_(object), where_(std::move(where)) {}

  [[noreturn]] void wrong(const char* key, const std::string& expected) const {
    const auto found = object_.find(key);
    throw DataError(fmt::format("{}: {}: expected {}, got {}", where_, key, expected,
                                found == object_.end() ? "nothing" : io::in_quotes(io::json_text(*found))));
  }
  std::string text(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end() || !found->is_string()) wrong(key, "text");
    return found->get<std::string>();
  }
  double number(const char* key) const {  // null: it was not finite
    const auto found = object_.find(key);
    if (found == object_.end() || !(found->is_number() || found->is_null())) wrong(key, "a number or null");
    return found->is_number() ? found->get<double>() : RunSummary::kNone;
  }
  template <class T>
  T whole(const char* key) const {
    const auto found = object_.find(key);
    const bool good =
        found != object_.end() && (std::is_unsigned_v<T> ? found->is_number_unsigned() : found->is_number_integer());
    if (!good) wrong(key, "a whole number");
    return found->get<T>();
  }
  const json& object(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end() || !found->is_object()) wrong(key, "an object");
    return *found;
  }
  bool has(const char* key) const { return object_.contains(key); }
  // Numbers and nulls.
  std::vector<double> numbers(const char* key) const {
    std::vector<double> values;
    const auto found = object_.find(key);
    if (found == object_.end() || !found->is_array()) wrong(key, "a list of numbers");
    for (const json& item : *found) {
      if (!item.is_number() && !item.is_null()) wrong(key, "a list of numbers");
      values.push_back(item.is_number() ? item.get<double>() : RunSummary::kNone);
    }
    return values;
  }

 private:
  const json& object_;
  std::string where_;
};

ThinnedCurve parse_curve(const Fields& line, const std::string& where) {
  const Fields fields(line.object("curve"), where + ": curve");
  ThinnedCurve curve{{}, fields.numbers("loss"), fields.numbers("grad_norm")};
  double before = 0;
  for (const double step : fields.numbers("steps")) {
    if (!(step > before && step < 1e15 && step == std::floor(step))) fields.wrong("steps", "ascending whole numbers");
    curve.last_step.push_back(static_cast<int64_t>(step));
    before = step;
  }
  if (curve.loss.size() != curve.last_step.size()) fields.wrong("loss", "as many numbers as steps");
  if (curve.grad_norm.size() != curve.last_step.size()) fields.wrong("grad_norm", "as many numbers as steps");
  return curve;
}

Measures parse_measures(const Fields& line, const std::string& where) {
  Measures measures;
  const json& object = line.object("measures");
  const Fields fields(object, where + ": measures");
  for (const auto& entry : object.items()) measures.emplace_back(entry.key(), fields.number(entry.key().c_str()));
  return measures;
}

ConfigTexts parse_config(const Fields& line, const std::string& where) {
  ConfigTexts config;
  const json& object = line.object("config");
  const Fields fields(object, where + ": config");
  for (const auto& [key, value] : object.items()) config.emplace_back(key, fields.text(key.c_str()));
  return config;
}

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

std::string config_key(const ConfigTexts& config) {
  std::string key;
  for (const auto& [name, text] : config) key += name + "=" + text + "\n";
  return key;
}

}  // namespace

RecordLine record_line(const std::string& sweep, const PlannedRun& run, const fs::path& run_dir,
                       const std::string& version) {
  // The threads it was run with, which need not be those that are asked for now.
  const int64_t threads = read_config_file((run_dir / io::kConfigFile).string()).engine.threads;
  return {.sweep = sweep,
          .dir = run.dir,
          .variant = run.variant,
          .scheme = run.config.model.residual,
          .lr = run.config.optim.lr,
          .seed = run.config.train.seed,
          .config = result_config(run.config),
          .summary = summarise_run(run_dir),
          .threads = threads > 0 ? threads : core_count(),
          .cpu = cpu_name(),
          .version = version};
}

std::string to_json(const RecordLine& line) {
  const RunSummary& summary = line.summary;
  json object = {{"schema", kSchema},
                 {"sweep", line.sweep},
                 {"dir", line.dir},
                 {"variant", line.variant},
                 {"scheme", line.scheme},
                 {"lr", line.lr},
                 {"seed", line.seed},
                 {"status", std::string(enum_text(summary.status))},
                 {"message", summary.message},
                 {"parameters", summary.parameters},
                 {"steps", summary.steps},
                 {"first_loss", summary.first_loss},
                 {"train_loss", summary.train_loss},
                 {"eval_step", summary.eval_step},
                 {"val_loss", summary.val_loss},
                 {"perplexity", summary.perplexity}};
  if (!summary.accuracy.empty()) object["accuracy"] = io::read_ordered_json(summary.accuracy, line.dir + ": accuracy");
  for (const auto& [name, value] : summary.measures) object["measures"][name] = value;
  object["seconds"] = summary.seconds;
  object["step_ms"] = summary.step_ms;
  object["tokens_per_s"] = summary.tokens_per_s;
  if (std::isfinite(summary.samples_per_s)) object["samples_per_s"] = summary.samples_per_s;
  object["threads"] = line.threads;
  object["cpu"] = line.cpu;
  object["version"] = line.version;
  auto& config = object["config"] = json::object();
  for (const auto& [key, text] : line.config) config[key] = text;
  object["curve"] = {{"steps", summary.curve.last_step},
                     {"loss", rounded(summary.curve.loss)},
                     {"grad_norm", rounded(summary.curve.grad_norm)}};
  return io::json_text(object);
}

RecordLine parse_record_line(const std::string& text, const std::string& where) {
  const json object = io::read_ordered_json(text, where);
  if (!object.is_object()) throw DataError(where + ": expected a JSON object, got " + io::in_quotes(text));
  const Fields fields(object, where);
  if (fields.whole<int64_t>("schema") != kSchema) fields.wrong("schema", std::to_string(kSchema));
  RecordLine line{.sweep = fields.text("sweep"),
                  .dir = fields.text("dir"),
                  .variant = fields.text("variant"),
                  .scheme = fields.text("scheme"),
                  .lr = fields.number("lr"),
                  .seed = fields.whole<uint64_t>("seed"),
                  .config = parse_config(fields, where),
                  .threads = fields.whole<int64_t>("threads"),
                  .cpu = fields.text("cpu"),
                  .version = fields.text("version")};
  const auto status = enum_from_text<RunStatus>(fields.text("status"));
  if (status != RunStatus::finished && status != RunStatus::diverged) fields.wrong("status", "finished or diverged");
  line.summary = {.status = *status,
                  .message = fields.text("message"),
                  .parameters = fields.whole<int64_t>("parameters"),
                  .steps = fields.whole<int64_t>("steps"),
                  .first_loss = fields.number("first_loss"),
                  .train_loss = fields.number("train_loss"),
                  .eval_step = fields.whole<int64_t>("eval_step"),
                  .val_loss = fields.number("val_loss"),
                  .perplexity = fields.number("perplexity"),
                  .accuracy = fields.has("accuracy") ? io::json_text(fields.object("accuracy")) : "",
                  .measures = fields.has("measures") ? parse_measures(fields, where) : Measures{},
                  .seconds = fields.number("seconds"),
                  .step_ms = fields.number("step_ms"),
                  .tokens_per_s = fields.number("tokens_per_s"),
                  .samples_per_s = fields.has("samples_per_s") ? fields.number("samples_per_s") : RunSummary::kNone,
                  .curve = parse_curve(fields, where)};
  return line;
}

SweepRecord::SweepRecord(fs::path file) : file_(std::move(file)) {
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
  std::vector<Entry> entries;
  size_t number = 0;
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find('\n', from), text.size());
    const std::string row = text.substr(from, end - from);
    ++number;
    from = end + 1;
    if (row.find_first_not_of(" \r") == std::string::npos) continue;  // left by an editor
    RecordLine line = parse_record_line(row, fmt::format("{}: line {}", file_.string(), number));
    ConfigTexts resolved = resolve(line.config);
    entries.push_back({std::move(line), std::move(resolved)});
  }
  entries_.clear();
  by_config_.clear();
  for (Entry& entry : entries) keep(std::move(entry));
  text_ = std::move(text);
}

void SweepRecord::keep(Entry entry) {
  if (!entry.resolved.empty()) by_config_.emplace(config_key(entry.resolved), entries_.size());
  entries_.push_back(std::move(entry));
}

const SweepRecord::Entry* SweepRecord::entry_about(const ConfigTexts& config) const {
  const auto found = by_config_.find(config_key(config));
  return config.empty() || found == by_config_.end() ? nullptr : &entries_[found->second];
}

std::vector<RecordLine> SweepRecord::lines() {
  refresh();
  std::vector<RecordLine> lines;
  for (const Entry& entry : entries_) lines.push_back(entry.line);
  return lines;
}

std::optional<RecordLine> SweepRecord::find(const RunConfig& planned) {
  refresh();
  const Entry* const entry = entry_about(result_config(planned));
  return entry != nullptr ? std::optional(entry->line) : std::nullopt;
}

void SweepRecord::add(const RecordLine& line) {
  check_writable();
  const io::DirectoryLock lock(io::folder_of(file_), io::DirectoryLock::WhenHeld::wait);
  refresh();
  ConfigTexts resolved = resolve(line.config);
  if (entry_about(resolved) != nullptr) return;
  std::string text = text_;
  if (!text.empty() && text.back() != '\n') text += '\n';  // edited by hand
  text += to_json(line) + '\n';
  io::write_file_atomic(file_, text);
  keep({line, std::move(resolved)});
  text_ = std::move(text);
  stamp_ = stamp();  // under the lock: the file is the one just written
}

}  // namespace siamese::train
