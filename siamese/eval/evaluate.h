// Everything `eval` reports of a model: held-out loss; for arithmetic exact-match accuracy, for vit top-1 and top-5 and
// the confusion matrix, for dit the terms of the loss and drawn samples.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/data/config.h"
#include "siamese/data/mixture.h"
#include "siamese/data/spread.h"
#include "siamese/eval/classification.h"
#include "siamese/eval/config.h"
#include "siamese/eval/exact_match.h"
#include "siamese/eval/held_out.h"
#include "siamese/eval/samples.h"
#include "siamese/eval/tasks.h"
#include "siamese/eval/words.h"
#include "siamese/runs/eval_record.h"

namespace siamese::eval {

// What a diffusion model drew.
struct DrawnSamples {
  at::Tensor images;
  std::optional<SampleQuality> quality;  // with a classifier
  std::string grid;                      // the picture, relative to the run directory; "" when none was written
};

struct Evaluation {
  int64_t step = 0;
  HeldOut held_out;
  double bits_per_byte = runs::kNone;        // of text whose bytes are known
  std::vector<runs::HeldOutSetRecord> sets;  // of data.mix; then held_out is their mean by weight
  double baseline = 0;                       // of predicting without looking, on the same samples (baseline.h)
  bool of_images = false;
  std::vector<MatchGroup> groups;  // empty: not arithmetic
  std::optional<Classification> classification;
  std::optional<DrawnSamples> samples;
  std::vector<runs::TaskRecord> tasks;
  std::vector<runs::PromptRecord> prompts;  // with their continuations
  EvalConfig config;                        // what was asked
  std::vector<std::string> class_names;

  int64_t correct() const;
  int64_t problems() const;
  double accuracy() const;  // 0 when there are no problems
  // "held-out loss 1.0502 of averaged weights over 4096 targets (baseline 2.2830)", for a log.
  std::string loss_text() const;
  // "top-1 81.2 %, ...": what this family is judged by, for a log.
  std::string measures_text() const;
};

// Which held-out samples are asked: config.held_out, spread over the set, or config.batches x `batch`, the first. They
// do not depend on the run's seed: all runs answer the same questions.
class HeldOutSamples {
 public:
  HeldOutSamples(const data::Batches& all, const EvalConfig& config, int64_t batch)
      : count_(config.held_out_samples(batch)), spread_(all, count_), from_(config.batches > 0 ? &all : &spread_) {}
  HeldOutSamples(const HeldOutSamples&) = delete;
  HeldOutSamples& operator=(const HeldOutSamples&) = delete;

  const data::Batches& from() const { return *from_; }
  int64_t count() const { return count_; }  // the first of from(), or all of it when it is smaller

 private:
  int64_t count_;
  data::SpreadBatches spread_;
  const data::Batches* from_;
};

struct Subject {
  const models::Model& model;
  const data::DataConfig& data;
  const data::Batches& held_out;
  int64_t batch = 0;                                      // samples of a training step, for config.batches
  int64_t rows = 0;                                       // samples of one forward pass
  int64_t step = 0;                                       // of the checkpoint
  const models::VisionTransformer* classifier = nullptr;  // judges drawn samples
  const Tasks* tasks = nullptr;                           // asked of a language model
  // Where held_out is the first of several sets, or the bytes of its text are known.
  const std::vector<data::HeldOutSet>* sets = nullptr;
  const Words* words = nullptr;  // reads config.prompts; null: they are left out
  // Ranks that evaluate together: all of them call it, each with the same weights. They share the passes over held-out
  // samples and the requests of tasks; what is drawn or generated otherwise, rank 0 does alone, and rank 0's result is
  // the one.
  comm::Group* group = nullptr;
  std::function<void()> alone = {};  // called on rank 0 when the others have done their part
};

// Problems do not depend on the run's seed either.
Evaluation evaluate(const Subject& subject, const EvalConfig& config);

runs::EvalRecord record_of(const Evaluation& evaluation);
// One line of eval.jsonl.
std::string to_json(const Evaluation& evaluation);

}  // namespace siamese::eval
