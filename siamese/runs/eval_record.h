// One line of eval.jsonl (docs/run-directory.md). Numbers that were null or not written are NaN.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "siamese/runs/notes.h"
#include "siamese/runs/numbers.h"
#include "siamese/runs/task_record.h"

namespace siamese::runs {

struct AccuracyGroup {
  std::string operation;
  int64_t digits = 0;
  int64_t correct = 0, count = 0;
};

// Exact match, in all and by group.
struct Accuracy {
  int64_t correct = 0, count = 0;
  std::vector<AccuracyGroup> groups;
};

struct Answers {
  int64_t correct = 0, count = 0;
  double share() const;  // NaN when count is 0 or correct is none of it
};

struct ClassificationRecord {
  Answers top1, top5;
  std::vector<std::string> classes;             // empty: numbered
  std::vector<std::vector<int64_t>> confusion;  // square; rows = true class; empty: not written
};

struct SamplesRecord {
  int64_t count = 0, steps = 0;
  std::string sampler;
  double guidance = kNone;
  double feature_distance = kNone, class_agreement = kNone;  // with a classifier
  std::string classifier;                                    // "": nobody judged them
  std::string grid;                                          // path below the run folder; "": no picture
};

// One of several held-out sets.
struct HeldOutSetRecord {
  std::string name;
  double loss = kNone, perplexity = kNone;
  double bits_per_byte = kNone;  // where the bytes of its text are known
  int64_t targets = 0;
};

// A text and what the model made of it.
struct PromptRecord {
  std::string prompt;
  std::string text;
};

struct EvalRecord {
  int64_t step = 0;
  double loss = kNone;        // with sets their mean by weight
  double perplexity = kNone;  // of text
  double bits_per_byte = kNone;
  std::vector<HeldOutSetRecord> sets;
  double baseline = kNone;  // of predicting without looking (docs/comparing.md)
  bool of_images = false;
  int64_t targets = 0;  // counted targets, or images
  std::optional<Accuracy> accuracy;
  std::optional<ClassificationRecord> classification;
  NamedNumbers diffusion;  // mse, vlb
  std::optional<SamplesRecord> samples;
  std::vector<TaskRecord> tasks;  // of a language model; a line of `siamese eval --tasks` has nothing else
  std::vector<PromptRecord> prompts;
  bool averaged = false;  // of the averaged weights

  // What it says beside the loss, as a record line has it: bits_per_byte, of each held-out set its loss ("web loss"),
  // top1, top5, mse, vlb, feature_distance, class_agreement, and of each task the metric it is reported by
  // ("piqa/rc_0shot len_norm"). Finite ones only.
  NamedNumbers measures() const;
};

inline constexpr std::string_view kBitsPerByte = "bits_per_byte";
inline constexpr std::string_view kSetLoss = " loss";  // behind the name of a set

// Whether a measure is a loss of held-out text: kBitsPerByte, or that of a set.
bool is_text_loss(std::string_view measure);

std::string to_line(const EvalRecord& record);
EvalRecord read_eval(std::string_view line, const std::string& where, Notes* notes = nullptr);

// `accuracy` of eval.jsonl and of a record line.
nlohmann::ordered_json to_json(const Accuracy& accuracy);
Accuracy read_accuracy(const nlohmann::ordered_json& object, const std::string& where);

}  // namespace siamese::runs
