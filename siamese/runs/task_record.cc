#include "siamese/runs/task_record.h"

#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/io/checksum.h"
#include "siamese/runs/fields.h"
#include "siamese/runs/lines.h"

namespace siamese::runs {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kHead = "task";
constexpr const char* kLine = "scores";

uint64_t read_hash(const Fields& fields, const char* key) {
  const auto hash = io::checksum_from_text(fields.text(key));
  if (!hash) fields.wrong(key, "16 hexadecimal digits");
  return *hash;
}

ScoresHead read_head(std::string_view line, const std::string& where) {
  const Json object = open_line(line, kHead, where);
  const Fields fields(object, where);
  return {fields.text("task"),          read_hash(fields, "set"), read_hash(fields, "tokenizer"),
          read_hash(fields, "weights"), fields.count("limit"),    fields.count("context")};
}

ScoresLine read_scores_line(std::string_view text, const std::string& where) {
  const Json object = open_line(text, kLine, where);
  const Fields fields(object, where);
  ScoresLine line;
  line.part = fields.text("part");
  for (const Json& id : fields.list("documents")) {
    if (!id.is_number_unsigned()) fields.wrong("documents", "numbers of documents");
    line.documents.push_back(id.get<int64_t>());
  }
  if (fields.has("texts")) line.texts = fields.texts("texts");
  if (fields.has("numbers")) {
    for (const Json& numbers : fields.list("numbers")) {
      if (!numbers.is_array()) fields.wrong("numbers", "a list of numbers for each document");
      auto& own = line.numbers.emplace_back();
      for (const Json& number : numbers) {
        if (!number.is_number()) fields.wrong("numbers", "a list of numbers for each document");
        own.push_back(number.get<double>());
      }
    }
  }
  if (line.numbers.size() + line.texts.size() != line.documents.size()) {
    fields.wrong("documents", "as many as numbers or texts");
  }
  return line;
}

}  // namespace

Json to_json(const TaskRecord& task) {
  Json metrics = Json::object();
  for (const auto& [name, value] : task.metrics) metrics[name] = value;
  Json object = {{"name", task.name}};
  if (!task.primary.empty()) object["primary"] = task.primary;
  object["documents"] = task.documents;
  if (task.left_out > 0) object["left_out"] = task.left_out;
  object["metrics"] = std::move(metrics);
  return object;
}

TaskRecord read_task(const Json& object, const std::string& where) {
  const Fields fields(object, where);
  TaskRecord task;
  task.name = fields.text("name");
  fields.take("primary", task.primary);
  task.documents = fields.count("documents");
  fields.take("left_out", task.left_out);
  const Fields metrics = fields.object("metrics");
  for (const auto& entry : metrics.json().items()) {
    task.metrics.emplace_back(entry.key(), metrics.number(entry.key().c_str()));
  }
  return task;
}

std::string to_line(const ScoresHead& head) {
  return sealed_line(kHead, {{"task", head.task},
                             {"set", io::checksum_text(head.set)},
                             {"tokenizer", io::checksum_text(head.tokenizer)},
                             {"weights", io::checksum_text(head.weights)},
                             {"limit", head.limit},
                             {"context", head.context}});
}

std::string to_line(const ScoresLine& line) {
  Json object = {{"part", line.part}, {"documents", line.documents}};
  if (!line.numbers.empty()) object["numbers"] = line.numbers;
  if (!line.texts.empty()) object["texts"] = line.texts;
  return sealed_line(kLine, object);
}

std::optional<Scores> read_scores(const std::filesystem::path& file) {
  std::optional<Scores> scores;
  for_each_line(file, [&](std::string_view line, const std::string& where, Notes*) {
    if (!scores) {
      scores.emplace();
      scores->head = read_head(line, where);
    } else {
      scores->lines.push_back(read_scores_line(line, where));
    }
  });
  return scores;
}

}  // namespace siamese::runs
