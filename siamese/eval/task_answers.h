// Answers in words, generated greedily until a stop sequence, the end-of-text token or the set's limit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "siamese/eval/tasks.h"

namespace siamese::eval {

// Documents of the set that an answer is generated to. `all`: also where the set is not reported by it.
std::vector<size_t> documents_to_answer(const TaskSet& set, bool all);

// Those that are generated together: of one limit and about one length of prompt.
std::vector<std::vector<size_t>> answer_batches(const TaskSet& set, std::vector<size_t> documents);

// What the model says to each, without the stop sequence.
std::vector<std::string> generate_answers(const models::LanguageModel& model, const Tasks& tasks, const TaskSet& set,
                                          const std::vector<size_t>& documents);

}  // namespace siamese::eval
