#include "siamese/eval/task_set.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/eval/task_metrics.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/byte_stream.h"
#include "siamese/io/checksum.h"
#include "siamese/io/line_reader.h"
#include "siamese/io/strict_json.h"

namespace siamese::eval {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kFiles[] = {"requests.jsonl.gz", "requests.jsonl", "requests.jsonl.zst"};
constexpr const char* kConfig = "config.json";
constexpr int64_t kUnconditional = 1'000'000;  // doc_id of the first unconditional request
constexpr int64_t kMostIndex = 1 << 20;
constexpr size_t kLongestLine = size_t{64} << 20;
constexpr int64_t kMostGenerated = 1 << 20;

fs::path requests_file(const fs::path& folder) {
  for (const char* const name : kFiles) {
    if (is_file(folder / name)) return folder / name;
  }
  return {};
}

// One request, read strictly; errors name file, line and field.
class Line {
 public:
  Line(const Json& value, std::string where) : where_(std::move(where)), value_(value) {
    if (!value.is_object()) fail("", "expected an object", value);
  }

  const Json& need(const Json& object, const char* key, const char* path) const {
    const auto found = object.find(key);
    if (found == object.end()) throw DataError(where_ + ": " + path + ": missing");
    return *found;
  }
  std::string text(const Json& object, const char* key, const char* path) const {
    const Json& value = need(object, key, path);
    if (!value.is_string()) fail(path, "expected text", value);
    return value.get<std::string>();
  }
  int64_t count(const Json& object, const char* key, const char* path, int64_t most) const {
    const Json& value = need(object, key, path);
    const bool whole = value.is_number_unsigned() && value.get<uint64_t>() <= static_cast<uint64_t>(most);
    if (!whole) fail(path, fmt::format("expected a whole number from 0 to {}", most), value);
    return value.get<int64_t>();
  }
  std::vector<std::string> texts(const Json& value, const char* path) const {
    if (value.is_string()) return {value.get<std::string>()};
    if (!value.is_array()) fail(path, "expected a list of texts", value);
    std::vector<std::string> all;
    for (const Json& item : value) {
      if (!item.is_string()) fail(path, "expected a list of texts", item);
      all.push_back(item.get<std::string>());
    }
    return all;
  }
  [[noreturn]] void fail(const std::string& path, const std::string& expected, const Json& got) const {
    std::string shown = io::json_text(got);
    if (shown.size() > 40) shown = std::string(got.type_name()) + " of " + std::to_string(shown.size()) + " bytes";
    throw DataError(fmt::format("{}: {}{}, got {}", where_, path.empty() ? "" : path + ": ", expected, shown));
  }
  const std::string& where() const { return where_; }
  const Json& value() const { return value_; }

 private:
  std::string where_;
  const Json& value_;
};

struct Request {
  bool likely = false, generated = false;  // what is asked of it
  int64_t document = 0, index = 0;
  bool unconditional = false;
  TaskChoice choice;
  std::optional<int64_t> label;
  std::vector<std::string> answers;
  std::vector<std::string> stop;
  int64_t max_tokens = 0;
};

void read_label(const Line& line, Request& request) {
  const Json& label = line.need(line.value(), "label", "label");
  if (label.is_number_unsigned()) {
    request.label = line.count(line.value(), "label", "label", kMostIndex);
  } else if (label.is_string() || label.is_array()) {
    request.answers = line.texts(label, "label");
  } else if (!label.is_null()) {
    line.fail("label", "expected the index of a choice, text, a list of texts or null", label);
  }
}

void read_generation(const Line& line, const Json& asked, Request& request) {
  if (asked.contains("stop_sequences") && !asked["stop_sequences"].is_null()) {
    request.stop = line.texts(asked["stop_sequences"], "request.stop_sequences");
  }
  constexpr int64_t kUsual = 256;
  request.max_tokens = kUsual;
  const auto kwargs = asked.find("generation_kwargs");
  if (kwargs != asked.end() && kwargs->is_object() && kwargs->contains("max_gen_toks")) {
    request.max_tokens = line.count(*kwargs, "max_gen_toks", "request.generation_kwargs.max_gen_toks", kMostGenerated);
  }
}

Request read_request(const Line& line, uint64_t number) {
  Request request;
  const std::string type = line.text(line.value(), "request_type", "request_type");
  request.likely = type == "loglikelihood" || type == "generate_until_and_loglikelihood";
  request.generated = type == "generate_until" || type == "generate_until_and_loglikelihood";
  if (!request.likely && !request.generated) {
    line.fail("request_type", "expected loglikelihood, generate_until or generate_until_and_loglikelihood", type);
  }
  request.document = line.count(line.value(), "doc_id", "doc_id", int64_t{1} << 50);
  request.unconditional = request.document >= kUnconditional;
  if (request.unconditional) request.document -= kUnconditional;
  request.index = line.count(line.value(), "idx", "idx", kMostIndex);
  read_label(line, request);
  const Json& asked = line.need(line.value(), "request", "request");
  if (!asked.is_object()) line.fail("request", "expected an object", asked);
  request.choice.context = line.text(asked, "context", "request.context");
  request.choice.line = number;
  if (request.likely) {
    request.choice.continuation = line.text(asked, "continuation", "request.continuation");
    if (request.choice.continuation.empty()) {
      throw DataError(line.where() + ": request.continuation: expected text, got none");
    }
  }
  if (request.generated) read_generation(line, asked, request);
  return request;
}

// Requests in the order of the file, gathered by document.
class Gathering {
 public:
  explicit Gathering(TaskSet& set) : set_(set) {}

  void add(Request request, const std::string& where) {
    const auto [entry, is_new] = places_.try_emplace(request.document, gathered_.size());
    if (is_new) gathered_.emplace_back();
    Gathered& gathered = gathered_[entry->second];
    TaskDocument& document = gathered.document;
    if (is_new) {
      document.id = request.document;
      document.line = request.choice.line;
      document.label = request.label;
      document.answers = request.answers;
      if (gathered_.size() == 1) set_.of_choices = request.label.has_value();
    }
    if (request.label.has_value() != set_.of_choices) {
      throw DataError(where + ": label: expected " +
                      (set_.of_choices ? "the index of a choice, as in the lines before"
                                       : "no index of a choice: the lines before have none"));
    }
    if (request.generated && document.max_tokens == 0 && !request.unconditional) {
      document.prompt = request.choice.context;
      document.stop = std::move(request.stop);
      document.max_tokens = request.max_tokens;
    }
    if (!request.likely) return;
    // Without choices there is one continuation, the first. Of equal requests the first counts.
    auto& choices = request.unconditional ? gathered.unconditional : gathered.choices;
    choices.try_emplace(set_.of_choices ? request.index : 0, std::move(request.choice));
  }

  void finish(int64_t limit) {
    for (Gathered& gathered : gathered_) {
      TaskDocument& document = gathered.document;
      const bool whole = complete(gathered.choices) && !(gathered.choices.empty() && document.max_tokens == 0);
      if (!whole) {
        ++set_.incomplete;
        continue;
      }
      for (auto& entry : gathered.choices) document.choices.push_back(std::move(entry.second));
      if (complete(gathered.unconditional) && gathered.unconditional.size() == document.choices.size()) {
        for (auto& entry : gathered.unconditional) document.unconditional.push_back(std::move(entry.second));
      }
      if (document.label && *document.label >= static_cast<int64_t>(document.choices.size())) {
        throw DataError(fmt::format("{}: line {}: label: expected the index of one of {} choices, got {}",
                                    set_.file.string(), document.line, document.choices.size(), *document.label));
      }
      set_.documents.push_back(std::move(document));
      if (limit > 0 && static_cast<int64_t>(set_.documents.size()) == limit) return;
    }
  }

 private:
  struct Gathered {
    TaskDocument document;
    std::map<int64_t, TaskChoice> choices, unconditional;
  };
  static bool complete(const std::map<int64_t, TaskChoice>& choices) {
    return choices.empty() || choices.rbegin()->first + 1 == static_cast<int64_t>(choices.size());
  }

  TaskSet& set_;
  std::vector<Gathered> gathered_;
  std::unordered_map<int64_t, size_t> places_;
};

void read_config(const fs::path& file, const std::string& own, TaskSet& set) {
  set.name = own;
  if (!is_file(file)) return;
  const Json config = io::read_json(io::read_file(file), file.string());
  const Line line(config, file.string());
  if (config.contains("task_name")) {
    std::string task = line.text(config, "task_name", "task_name");
    task.resize(std::min(task.size(), task.find(':')));  // "arc_challenge:mc": which variant, says the folder
    if (task != own && !task.empty()) set.name = task + "/" + own;
  }
  const auto about = config.find("task_config");
  if (about == config.end()) return;
  if (!about->is_object()) line.fail("task_config", "expected an object", *about);
  const auto metric = about->find("primary_metric");
  if (metric == about->end() || metric->is_null()) return;
  const std::string named = line.text(*about, "primary_metric", "task_config.primary_metric");
  set.primary = metric_of_olmo(named);
  if (set.primary.empty()) {
    line.fail("task_config.primary_metric", "expected one of " + olmo_metrics_text(), named);
  }
}

}  // namespace

bool TaskSet::has_unconditional() const {
  return !documents.empty() && std::all_of(documents.begin(), documents.end(), [](const TaskDocument& document) {
    return !document.unconditional.empty();
  });
}

std::vector<fs::path> find_task_sets(const fs::path& folder) {
  if (!is_folder(folder)) throw DataError(folder.string() + ": expected a folder of evaluation requests");
  if (!requests_file(folder).empty()) return {folder};
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code unreadable;
    if (entry->is_directory(unreadable) && !requests_file(entry->path()).empty()) found.push_back(entry->path());
  }
  std::sort(found.begin(), found.end());
  if (found.empty()) throw DataError(folder.string() + ": holds no requests.jsonl or requests.jsonl.gz");
  return found;
}

TaskSet read_task_set(const fs::path& folder, int64_t limit) {
  const fs::path requests = requests_file(folder);
  if (requests.empty()) throw DataError(folder.string() + ": holds no requests.jsonl or requests.jsonl.gz");
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(folder, error);
  return read_task_files(requests, folder / kConfig, (error ? folder : whole).filename().string(), limit);
}

TaskSet read_task_files(const fs::path& requests, const fs::path& config, const std::string& folder_name,
                        int64_t limit) {
  TaskSet set;
  set.file = requests;
  read_config(config, folder_name, set);
  const auto stream = io::open_bytes(set.file);
  io::LineReader reader(*stream, kLongestLine);
  Gathering gathering(set);
  io::Checksum hash;
  std::string text;
  for (io::LineKind kind = reader.next(text); kind != io::LineKind::end; kind = reader.next(text)) {
    const std::string where = fmt::format("{}: line {}", set.file.string(), reader.lines());
    if (kind == io::LineKind::too_long) throw DataError(where + ": longer than 64 MiB");
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Json value = io::read_json(text, where);
    hash.add(std::as_bytes(std::span(text)));
    gathering.add(read_request(Line(value, where), reader.lines()), where);
  }
  gathering.finish(limit);
  if (set.documents.empty()) {
    throw DataError(set.incomplete == 0 ? set.file.string() + ": holds no request"
                                        : set.file.string() + ": holds no document with all of its choices");
  }
  set.hash = hash.value();
  set.generates = std::any_of(set.documents.begin(), set.documents.end(), [&](const TaskDocument& document) {
    return document.max_tokens > 0 && (document.choices.empty() || set.primary == kExactMatch);
  });
  return set;
}

}  // namespace siamese::eval
