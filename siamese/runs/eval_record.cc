#include "siamese/runs/eval_record.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/runs/fields.h"
#include "siamese/runs/lines.h"

namespace siamese::runs {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kEvalKind = "eval";

Json answers_json(const Answers& answers) { return {{"correct", answers.correct}, {"count", answers.count}}; }

Json classification_json(const ClassificationRecord& result) {
  Json object = {{"top1", answers_json(result.top1)}, {"top5", answers_json(result.top5)}};
  if (result.confusion.empty()) return object;
  if (!result.classes.empty()) object["classes"] = result.classes;
  object["confusion"] = result.confusion;
  return object;
}

Json samples_json(const SamplesRecord& samples) {
  Json object = {
      {"count", samples.count}, {"sampler", samples.sampler}, {"steps", samples.steps}, {"guidance", samples.guidance}};
  if (!samples.classifier.empty()) {
    object["feature_distance"] = samples.feature_distance;
    object["class_agreement"] = samples.class_agreement;
    object["classifier"] = samples.classifier;
  }
  if (!samples.grid.empty()) object["grid"] = samples.grid;
  return object;
}

Json set_json(const HeldOutSetRecord& set) {
  Json object = {{"name", set.name}, {"loss", set.loss}, {"perplexity", set.perplexity}};
  if (std::isfinite(set.bits_per_byte)) object["bits_per_byte"] = set.bits_per_byte;
  object["tokens"] = set.targets;
  return object;
}

HeldOutSetRecord read_set(const Json& object, const std::string& where) {
  const Fields fields(object, where);
  HeldOutSetRecord set;
  set.name = fields.text("name");
  set.loss = fields.number("loss");
  set.perplexity = fields.number("perplexity");
  fields.take("bits_per_byte", set.bits_per_byte);
  set.targets = fields.count("tokens");
  return set;
}

Answers read_answers(const Fields& outer, const char* key) {
  const Fields fields = outer.object(key);
  const Answers answers{fields.count("correct"), fields.count("count")};
  if (answers.correct > answers.count) fields.wrong("correct", fmt::format("at most {}", answers.count));
  return answers;
}

std::vector<std::vector<int64_t>> read_confusion(const Fields& fields) {
  const Json& matrix = fields.list("confusion");
  const size_t classes = matrix.size();
  std::vector<std::vector<int64_t>> counts;
  for (const Json& line : matrix) {
    if (!line.is_array() || line.size() != classes) {
      fields.wrong("confusion", fmt::format("{} rows of {} counts each", classes, classes));
    }
    auto& row = counts.emplace_back();
    for (const Json& value : line) {
      if (!value.is_number_unsigned()) fields.wrong("confusion", "counts");
      row.push_back(value.get<int64_t>());
    }
  }
  return counts;
}

ClassificationRecord read_classification(const Fields& fields) {
  ClassificationRecord result;
  fields.attempt("top1", [&] { result.top1 = read_answers(fields, "top1"); });
  fields.attempt("top5", [&] { result.top5 = read_answers(fields, "top5"); });
  fields.attempt("classes", [&] { result.classes = fields.texts("classes"); });
  fields.attempt("confusion", [&] { result.confusion = read_confusion(fields); });
  return result;
}

SamplesRecord read_samples(const Fields& fields) {
  SamplesRecord samples;
  fields.take("count", samples.count);
  fields.take("sampler", samples.sampler);
  fields.take("steps", samples.steps);
  fields.take("guidance", samples.guidance);
  fields.take("feature_distance", samples.feature_distance);
  fields.take("class_agreement", samples.class_agreement);
  fields.take("classifier", samples.classifier);
  fields.take("grid", samples.grid);
  return samples;
}

void add_finite(NamedNumbers& numbers, const std::string& name, double value) {
  if (std::isfinite(value)) numbers.emplace_back(name, value);
}

}  // namespace

double Answers::share() const { return count > 0 ? static_cast<double>(correct) / static_cast<double>(count) : kNone; }

bool is_text_loss(std::string_view measure) {
  return measure == kBitsPerByte || (measure.ends_with(kSetLoss) && measure.size() > kSetLoss.size());
}

NamedNumbers EvalRecord::measures() const {
  NamedNumbers numbers;
  add_finite(numbers, std::string(kBitsPerByte), bits_per_byte);
  for (const HeldOutSetRecord& set : sets) add_finite(numbers, set.name + std::string(kSetLoss), set.loss);
  if (classification) {
    add_finite(numbers, "top1", classification->top1.share());
    add_finite(numbers, "top5", classification->top5.share());
  }
  for (const auto& [name, value] : diffusion) add_finite(numbers, name, value);
  if (samples) {
    add_finite(numbers, "feature_distance", samples->feature_distance);
    add_finite(numbers, "class_agreement", samples->class_agreement);
  }
  for (const TaskRecord& task : tasks) add_finite(numbers, task.name + " " + task.primary, task.primary_value());
  return numbers;
}

Json to_json(const Accuracy& accuracy) {
  auto groups = Json::array();
  for (const AccuracyGroup& group : accuracy.groups) {
    groups.push_back(
        {{"operation", group.operation}, {"digits", group.digits}, {"correct", group.correct}, {"count", group.count}});
  }
  return {{"correct", accuracy.correct}, {"count", accuracy.count}, {"groups", std::move(groups)}};
}

Accuracy read_accuracy(const Json& object, const std::string& where) {
  const Fields fields(object, where);
  Accuracy accuracy{fields.count("correct"), fields.count("count"), {}};
  if (!fields.has("groups")) return accuracy;
  for (const Json& group : fields.list("groups")) {
    const Fields of(group, where + ": groups");
    accuracy.groups.push_back({of.text("operation"), of.count("digits"), of.count("correct"), of.count("count")});
  }
  return accuracy;
}

std::string to_line(const EvalRecord& record) {
  Json line = {{"step", record.step}};
  const bool held_out = record.tasks.empty() || record.targets > 0;
  if (held_out) line["loss"] = record.loss;
  if (held_out && !record.of_images) line["perplexity"] = record.perplexity;
  if (std::isfinite(record.bits_per_byte)) line["bits_per_byte"] = record.bits_per_byte;
  if (std::isfinite(record.baseline)) line["baseline"] = record.baseline;
  if (held_out) line[record.of_images ? "images" : "tokens"] = record.targets;
  for (const HeldOutSetRecord& set : record.sets) line["sets"].push_back(set_json(set));
  if (record.accuracy) line["accuracy"] = to_json(*record.accuracy);
  if (record.classification) line["classification"] = classification_json(*record.classification);
  for (const auto& [name, value] : record.diffusion) line["diffusion"][name] = value;
  if (record.samples) line["samples"] = samples_json(*record.samples);
  for (const TaskRecord& task : record.tasks) line["tasks"].push_back(to_json(task));
  for (const PromptRecord& made : record.prompts) {
    line["prompts"].push_back({{"prompt", made.prompt}, {"text", made.text}});
  }
  if (record.averaged) line["averaged"] = true;
  return sealed_line(kEvalKind, line);
}

EvalRecord read_eval(std::string_view line, const std::string& where, Notes* notes) {
  const Json object = open_line(line, kEvalKind, where);
  const Fields fields(object, where, notes);
  EvalRecord record;
  record.step = fields.whole("step");
  fields.take("loss", record.loss);
  fields.take("perplexity", record.perplexity);
  fields.take("bits_per_byte", record.bits_per_byte);
  fields.take("baseline", record.baseline);
  fields.attempt("sets", [&] {
    for (const Json& set : fields.list("sets")) record.sets.push_back(read_set(set, where + ": sets"));
  });
  record.of_images = fields.has("images");
  fields.take(record.of_images ? "images" : "tokens", record.targets);
  fields.attempt("accuracy", [&] { record.accuracy = read_accuracy(fields.at("accuracy"), where + ": accuracy"); });
  fields.attempt("classification",
                 [&] { record.classification = read_classification(fields.object("classification")); });
  fields.attempt("diffusion", [&] {
    const Fields terms = fields.object("diffusion");
    for (const auto& term : terms.json().items()) {
      const char* const name = term.key().c_str();
      terms.attempt(name, [&] { record.diffusion.emplace_back(name, terms.number(name)); });
    }
  });
  fields.attempt("samples", [&] { record.samples = read_samples(fields.object("samples")); });
  fields.attempt("tasks", [&] {
    for (const Json& task : fields.list("tasks")) record.tasks.push_back(read_task(task, where + ": tasks"));
  });
  fields.attempt("prompts", [&] {
    for (const Json& made : fields.list("prompts")) {
      const Fields of(made, where + ": prompts");
      record.prompts.push_back({of.text("prompt"), of.text("text")});
    }
  });
  fields.take("averaged", record.averaged);
  return record;
}

}  // namespace siamese::runs
