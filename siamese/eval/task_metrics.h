// From the log-likelihoods of continuations to the numbers that a task is judged by. l is the natural log-likelihood of
// a continuation after its context; the answer to a document is the choice whose score is largest, of equal ones the
// first. Lengths are those of the continuation as it is sent, with its leading space.
//   acc           score l                              acc_per_token  l / tokens
//   len_norm      l / characters                       acc_per_byte   l / bytes
//   acc_uncond    l - l after the context that does not ask (pointwise mutual information)
//   pmi_dc        l / l after the context " ": what OLMo's package computes under this name
//   ce_loss, bpb  mean of -l / characters and of -l / (bytes ln 2) of the right continuation
//   exact_match   share of generated answers that are right
// *_v1: the leading space is not counted, as OLMo had it first.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "siamese/runs/numbers.h"

namespace siamese::eval {

inline constexpr const char* kExactMatch = "exact_match";

struct ChoiceScore {
  double likelihood = 0;               // log
  double unconditional = runs::kNone;  // log, of the same continuation after what does not ask
  double domain = runs::kNone;         // log, after " "
  int64_t tokens = 0;
  int64_t characters = 0, bytes = 0;        // with the leading space
  int64_t characters_v1 = 0, bytes_v1 = 0;  // without
};

// The lengths of a continuation, which is UTF-8.
ChoiceScore measured(std::string_view continuation);

struct DocumentScore {
  std::vector<ChoiceScore> choices;
  int64_t label = 0;             // the right one
  std::optional<bool> answered;  // whether a generated answer is right; none was asked for
};

// What these scores allow, in the order above. `of_choices`: something was to be chosen.
runs::NamedNumbers task_metrics(std::span<const DocumentScore> documents, bool of_choices);

// How OLMo's config.json calls a metric ("acc_per_char") -> ours ("len_norm"); "" when it is not known.
std::string metric_of_olmo(std::string_view name);
std::string olmo_metrics_text();

// Whether what was said is one of the right answers: the same text but for white space around it; where an answer is a
// number, the last number that was said; else what stands in the last \boxed{}.
bool says_answer(std::string_view said, std::span<const std::string> answers);

}  // namespace siamese::eval
