// How often a vision model's first and first five guesses are right on held-out images, and what it takes for what.
#pragma once

#include <cstdint>
#include <vector>

#include "siamese/comm/group.h"
#include "siamese/data/batches.h"
#include "siamese/eval/baseline.h"
#include "siamese/models/vit.h"

namespace siamese::eval {

struct Classification {
  double loss = 0;  // mean cross-entropy with the labels
  int64_t count = 0;
  int64_t top1 = 0;
  int64_t top5 = 0;                             // any of min(5, classes) guesses
  std::vector<std::vector<int64_t>> confusion;  // [label][guess]; empty past kMostConfused classes
};

constexpr int64_t kMostConfused = 100;

// The first `samples` images of the set, or all of it when it is smaller, `rows` in one forward pass. Of equal logits
// the lower class counts as the earlier guess. `baseline`, if given, sees the images too. `group`: ranks that share the
// passes; all of them call it and get the same (passes.h).
Classification classify(const models::VisionTransformer& model, const data::Batches& source, int64_t rows,
                        int64_t samples, Baseline* baseline = nullptr, comm::Group* group = nullptr);

}  // namespace siamese::eval
