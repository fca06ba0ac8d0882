#include "siamese/eval/evaluate.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/io/strict_json.h"

namespace siamese::eval {
namespace {

using json = nlohmann::ordered_json;

constexpr uint64_t kProblemSeed = 2602;  // which test problems are asked

double share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

DrawnSamples draw_and_judge(const models::DiffusionTransformer& model, const Subject& subject,
                            const EvalConfig& config) {
  const int64_t of_data = data::sizes_of(subject.data).classes;  // a model may have room for more
  const auto labels = all_classes(of_data > 0 ? of_data : model.config().classes);
  DrawnSamples drawn;
  SamplerOptions options = config.sampler_options();
  options.clip = subject.data.source != data::Source::latents;
  drawn.images = draw_samples(model, labels, config.samples, subject.rows, options);
  if (subject.classifier != nullptr) {
    drawn.quality = judge_samples(*subject.classifier, drawn.images, labels, subject.held_out, subject.rows,
                                  subject.batch * config.batches);
  }
  return drawn;
}

json accuracy_json(const Evaluation& evaluation) {
  auto groups = json::array();
  for (const auto& group : evaluation.groups) {
    groups.push_back({{"operation", std::string(1, group.operation)},
                      {"digits", group.digits},
                      {"correct", group.correct},
                      {"count", group.count}});
  }
  return {{"correct", evaluation.correct()}, {"count", evaluation.problems()}, {"groups", groups}};
}

json classification_json(const Evaluation& evaluation) {
  const Classification& result = *evaluation.classification;
  json object = {{"top1", {{"correct", result.top1}, {"count", result.count}}},
                 {"top5", {{"correct", result.top5}, {"count", result.count}}}};
  if (result.confusion.empty()) return object;
  if (!evaluation.class_names.empty()) object["classes"] = evaluation.class_names;
  object["confusion"] = result.confusion;
  return object;
}

json samples_json(const Evaluation& evaluation) {
  const DrawnSamples& samples = *evaluation.samples;
  const EvalConfig& config = evaluation.config;
  json object = {{"count", samples.images.size(0)},
                 {"sampler", std::string(enum_text(config.sampler))},
                 {"steps", config.sampler_steps},
                 {"guidance", config.guidance}};
  if (samples.quality) {
    object["feature_distance"] = samples.quality->feature_distance;
    object["class_agreement"] = samples.quality->class_agreement;
    object["classifier"] = config.classifier;
  }
  if (!samples.grid.empty()) object["grid"] = samples.grid;
  return object;
}

}  // namespace

int64_t Evaluation::correct() const {
  int64_t total = 0;
  for (const auto& group : groups) total += group.correct;
  return total;
}

int64_t Evaluation::problems() const {
  int64_t total = 0;
  for (const auto& group : groups) total += group.count;
  return total;
}

double Evaluation::accuracy() const { return share(correct(), problems()); }

std::string Evaluation::measures_text() const {
  std::string text;
  if (!of_images) text += fmt::format("perplexity {:.3f}", held_out.perplexity);
  for (const auto& [name, value] : held_out.terms)
    text += fmt::format("{}{} {:.4f}", text.empty() ? "" : ", ", name, value);
  if (problems() > 0) text += fmt::format(", exact match {:.1f} % of {}", 100 * accuracy(), problems());
  if (classification) {
    text +=
        fmt::format("top-1 {:.1f} %, top-5 {:.1f} % of {}", 100 * share(classification->top1, classification->count),
                    100 * share(classification->top5, classification->count), classification->count);
  }
  if (samples && samples->quality) {
    text += fmt::format(", feature distance {:.3f}, class agreement {:.1f} % of {} samples",
                        samples->quality->feature_distance, 100 * samples->quality->class_agreement,
                        samples->images.size(0));
  }
  return text;
}

Evaluation evaluate(const Subject& subject, const EvalConfig& config) {
  Evaluation result;
  result.step = subject.step;
  result.config = config;
  const int64_t samples = subject.batch * config.batches;
  if (const auto* const vit = dynamic_cast<const models::VisionTransformer*>(&subject.model)) {
    result.of_images = true;
    result.class_names = data::class_names(subject.data);
    result.classification = classify(*vit, subject.held_out, subject.rows, samples);
    result.held_out.loss = result.classification->loss;
    result.held_out.targets = static_cast<double>(result.classification->count);
    return result;
  }
  result.held_out = held_out_loss(subject.model, subject.held_out, subject.rows, samples);
  if (const auto* const dit = dynamic_cast<const models::DiffusionTransformer*>(&subject.model)) {
    result.of_images = true;
    if (config.samples > 0) result.samples = draw_and_judge(*dit, subject, config);
  }
  const auto* const lm = dynamic_cast<const models::LanguageModel*>(&subject.model);
  if (lm != nullptr && subject.data.source == data::Source::arithmetic && config.problems > 0) {
    result.groups = exact_match(*lm, subject.data, config.problems, kProblemSeed);
  }
  return result;
}

std::string to_json(const Evaluation& evaluation) {
  json line;
  line["schema"] = 1;
  line["step"] = evaluation.step;
  line["loss"] = evaluation.held_out.loss;
  if (!evaluation.of_images) line["perplexity"] = evaluation.held_out.perplexity;
  line[evaluation.of_images ? "images" : "tokens"] = static_cast<int64_t>(evaluation.held_out.targets);
  if (!evaluation.groups.empty()) line["accuracy"] = accuracy_json(evaluation);
  if (evaluation.classification) line["classification"] = classification_json(evaluation);
  for (const auto& [name, value] : evaluation.held_out.terms) line["diffusion"][name] = value;
  if (evaluation.samples) line["samples"] = samples_json(evaluation);
  if (evaluation.config.averaged) line["averaged"] = true;
  return io::json_text(line);
}

}  // namespace siamese::eval
