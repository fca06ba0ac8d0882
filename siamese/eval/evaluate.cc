#include "siamese/eval/evaluate.h"

#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "siamese/eval/baseline.h"
#include "siamese/eval/generate.h"

namespace siamese::eval {
namespace {

constexpr uint64_t kProblemSeed = 2602;  // which test problems are asked

double share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

DrawnSamples draw_and_judge(const models::DiffusionTransformer& model, const Subject& subject, const EvalConfig& config,
                            const HeldOutSamples& held_out) {
  const int64_t of_data = data::sizes_of(subject.data).classes;  // a model may have room for more
  const auto labels = all_classes(of_data > 0 ? of_data : model.config().classes);
  DrawnSamples drawn;
  SamplerOptions options = config.sampler_options();
  options.clip = subject.data.source != data::Source::latents;
  drawn.images = draw_samples(model, labels, config.samples, subject.rows, options);
  if (subject.classifier != nullptr) {
    drawn.quality =
        judge_samples(*subject.classifier, drawn.images, labels, held_out.from(), subject.rows, held_out.count());
  }
  return drawn;
}

double bits_per_byte(double loss, double bytes_per_token) { return loss * std::numbers::log2e / bytes_per_token; }

// Of several sets each has its loss; that of them all is their mean by the weights they are trained with.
void measure_held_out(const Subject& subject, const EvalConfig& config, const HeldOutSamples& first, Baseline& baseline,
                      Evaluation& result) {
  const auto measure = [&](const HeldOutSamples& samples, Baseline* of) {
    return held_out_loss(subject.model, samples.from(), subject.rows, samples.count(), of, subject.group);
  };
  if (subject.sets == nullptr || subject.sets->front().name.empty()) {
    result.held_out = measure(first, &baseline);
    if (subject.sets == nullptr) return;
    result.bits_per_byte = bits_per_byte(result.held_out.loss, subject.sets->front().bytes_per_token);
    return;
  }
  double sum = 0, weights = 0;
  for (const data::HeldOutSet& set : *subject.sets) {
    const bool trained = set.weight > 0;
    const HeldOut own = measure(HeldOutSamples(*set.batches, config, subject.batch), trained ? &baseline : nullptr);
    result.sets.push_back({.name = set.name,
                           .loss = own.loss,
                           .perplexity = own.perplexity,
                           .bits_per_byte = bits_per_byte(own.loss, set.bytes_per_token),
                           .targets = static_cast<int64_t>(own.targets)});
    if (!trained) continue;
    sum += set.weight * own.loss;
    weights += set.weight;
    result.held_out.targets += own.targets;
  }
  result.held_out.loss = sum / weights;
  result.held_out.perplexity = std::exp(result.held_out.loss);
}

const models::ModelConfig& config_of(const models::Model& model) {
  if (const auto* const vit = dynamic_cast<const models::VisionTransformer*>(&model)) return vit->config();
  if (const auto* const dit = dynamic_cast<const models::DiffusionTransformer*>(&model)) return dit->config();
  return dynamic_cast<const models::LanguageModel&>(model).config();
}

std::vector<runs::PromptRecord> continued(const models::LanguageModel& model, const Words& words,
                                          const EvalConfig& config) {
  std::vector<runs::PromptRecord> records;
  std::vector<std::vector<int64_t>> prompts;
  std::vector<Continuation> made;
  for (const std::string& prompt : config.prompts) {
    records.push_back({prompt, ""});
    prompts.push_back(words.encode(prompt, words.special()));
    made.emplace_back(words, prompts.back(), std::vector<std::string>());
  }
  generate(model, prompts, {.max_tokens = config.prompt_tokens}, [&](size_t i, int64_t token) {
    records[i].text += made[i].add(token);
    return !made[i].done();
  });
  for (size_t i = 0; i < made.size(); ++i) records[i].text += made[i].rest();
  return records;
}

std::vector<runs::TaskRecord> asked(const models::LanguageModel& model, const Tasks& tasks, comm::Group* group) {
  TaskObserver silent;
  std::vector<runs::TaskRecord> records;
  for (const TaskSet& set : tasks.sets()) {
    records.push_back(*evaluate_task(model, tasks, set, {}, silent, group));
  }
  return records;
}

runs::Accuracy accuracy_of(const Evaluation& evaluation) {
  runs::Accuracy accuracy{evaluation.correct(), evaluation.problems(), {}};
  for (const auto& group : evaluation.groups) {
    accuracy.groups.push_back({std::string(1, group.operation), group.digits, group.correct, group.count});
  }
  return accuracy;
}

runs::SamplesRecord samples_of(const Evaluation& evaluation) {
  const DrawnSamples& samples = *evaluation.samples;
  const EvalConfig& config = evaluation.config;
  runs::SamplesRecord record{.count = samples.images.size(0),
                             .steps = config.sampler_steps,
                             .sampler = std::string(enum_text(config.sampler)),
                             .guidance = config.guidance};
  if (samples.quality) {
    record.feature_distance = samples.quality->feature_distance;
    record.class_agreement = samples.quality->class_agreement;
    record.classifier = config.classifier;
  }
  record.grid = samples.grid;
  return record;
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

std::string Evaluation::loss_text() const {
  return fmt::format("held-out loss {:.4f}{} over {:.0f} {} (baseline {:.4f})", held_out.loss,
                     config.averaged ? " of averaged weights" : "", held_out.targets, of_images ? "images" : "targets",
                     baseline);
}

std::string Evaluation::measures_text() const {
  std::string text;
  if (!of_images) {
    text += held_out.perplexity < 1e6 ? fmt::format("perplexity {:.3f}", held_out.perplexity)
                                      : fmt::format("perplexity {:.3e}", held_out.perplexity);
  }
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
  if (std::isfinite(bits_per_byte)) text += fmt::format(", {:.4f} bits per byte", bits_per_byte);
  for (const runs::HeldOutSetRecord& set : sets) {
    text += fmt::format(", {} {:.4f}", set.name, set.loss);
    if (std::isfinite(set.bits_per_byte)) text += fmt::format(" ({:.4f} bits per byte)", set.bits_per_byte);
  }
  for (const runs::TaskRecord& task : tasks) {
    const double value = task.primary_value();
    if (std::isfinite(value)) text += fmt::format(", {} {} {:.4f}", task.name, task.primary, value);
  }
  return text;
}

Evaluation evaluate(const Subject& subject, const EvalConfig& config) {
  Evaluation result;
  result.step = subject.step;
  result.config = config;
  const HeldOutSamples held_out(subject.held_out, config, subject.batch);
  Baseline baseline(config_of(subject.model));
  if (const auto* const vit = dynamic_cast<const models::VisionTransformer*>(&subject.model)) {
    result.of_images = true;
    result.class_names = data::class_names(subject.data);
    result.classification = classify(*vit, held_out.from(), subject.rows, held_out.count(), &baseline, subject.group);
    result.held_out.loss = result.classification->loss;
    result.held_out.targets = static_cast<double>(result.classification->count);
    result.baseline = baseline.loss();
    return result;
  }
  measure_held_out(subject, config, held_out, baseline, result);
  result.baseline = baseline.loss();
  const auto* const lm = dynamic_cast<const models::LanguageModel*>(&subject.model);
  if (lm != nullptr && subject.tasks != nullptr) result.tasks = asked(*lm, *subject.tasks, subject.group);
  if (subject.group != nullptr && !subject.group->leads()) return result;
  if (subject.alone) subject.alone();
  if (const auto* const dit = dynamic_cast<const models::DiffusionTransformer*>(&subject.model)) {
    result.of_images = true;
    if (config.samples > 0) result.samples = draw_and_judge(*dit, subject, config, held_out);
  }
  if (lm != nullptr && subject.words != nullptr) result.prompts = continued(*lm, *subject.words, config);
  if (lm != nullptr && subject.data.source == data::Source::arithmetic && config.problems > 0) {
    result.groups = exact_match(*lm, subject.data, config.problems, kProblemSeed);
  }
  return result;
}

runs::EvalRecord record_of(const Evaluation& evaluation) {
  runs::EvalRecord record;
  record.step = evaluation.step;
  record.loss = evaluation.held_out.loss;
  record.of_images = evaluation.of_images;
  if (!evaluation.of_images) record.perplexity = evaluation.held_out.perplexity;
  record.bits_per_byte = evaluation.bits_per_byte;
  record.sets = evaluation.sets;
  record.baseline = evaluation.baseline;
  record.targets = static_cast<int64_t>(evaluation.held_out.targets);
  if (!evaluation.groups.empty()) record.accuracy = accuracy_of(evaluation);
  if (const auto& result = evaluation.classification) {
    record.classification =
        runs::ClassificationRecord{{result->top1, result->count}, {result->top5, result->count}, {}, result->confusion};
    if (!result->confusion.empty()) record.classification->classes = evaluation.class_names;
  }
  record.diffusion = evaluation.held_out.terms;
  if (evaluation.samples) record.samples = samples_of(evaluation);
  record.tasks = evaluation.tasks;
  record.prompts = evaluation.prompts;
  record.averaged = evaluation.config.averaged;
  return record;
}

std::string to_json(const Evaluation& evaluation) { return runs::to_line(record_of(evaluation)); }

}  // namespace siamese::eval
