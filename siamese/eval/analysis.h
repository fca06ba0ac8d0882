// A model laid open by depth (docs/analyze.md): statistics of streams and branches, gradients, lenses, the loss with
// parts left out, what each stream is used for. Samples come in pieces, so memory does not grow with their number;
// nothing is random.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "siamese/data/batches.h"
#include "siamese/eval/words.h"
#include "siamese/models/config.h"
#include "siamese/models/model.h"
#include "siamese/models/weights.h"
#include "siamese/runs/analysis_record.h"

namespace siamese::eval {

struct AnalysisOptions {
  int64_t samples = 64;         // looked at, evenly spread over the set; at most all of it
  int64_t lens_tokens = 2048;   // of text, that lenses read: each costs two products with the head a place and stream
  int64_t changed_samples = 4;  // of the samples: for gradients and for the loss with parts left out, a pass each
  bool all_ranges = false;      // of blocks to leave out; else those of 1, 2, 4, 8 ... blocks
  bool all_sites = false;       // zero and hold streams from every site on; else from the beginning of each block
};

struct Analysis {
  runs::AnalysisRecord record;               // without what it is of: run, scheme, step
  std::vector<models::NamedTensor> tensors;  // docs/analyze.md
};

// What is being done, and how much of it.
using AnalysisProgress = std::function<void(const std::string& what, int64_t done, int64_t of)>;

// Gives the largest values the texts of their tokens, where the model's tokens are text.
void name_tokens(runs::AnalysisRecord& record, const Words& words);

// DivergedError when the loss is not finite.
Analysis analyze(const models::Model& model, const models::ModelConfig& config, const data::Batches& held_out,
                 const AnalysisOptions& options, const AnalysisProgress& progress = {});

}  // namespace siamese::eval
