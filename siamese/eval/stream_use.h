// What the streams of a scheme are used for. Share of stream k in what a read gives, by leaving it out:
//   d_k = mean over tokens of |read(streams) - read(streams, k zero)|;   share_k = d_k / sum_j d_j
// at the close the same of the final state. And the weights that a scheme computes itself: those of a read (hc, mhc,
// attn_res), and how far the mixing of streams is from leaving them alone: mean over tokens of |M - I| / sqrt(n).
#pragma once

#include <vector>

#include "siamese/eval/given_batch.h"
#include "siamese/models/weights.h"
#include "siamese/runs/analysis_record.h"

namespace siamese::eval {

class StreamUse : private models::Intervention {
 public:
  explicit StreamUse(const models::Model& model);

  void add(const GivenBatch& batch);
  // Into the places that are there.
  void fill(runs::AnalysisRecord& record) const;
  // depth/weights [places, most streams], where the scheme has such weights: row i is the mean over tokens of those of
  // place i; NaN where it has fewer streams. The close has a row where it weighs streams, too (attn_res).
  std::vector<models::NamedTensor> tensors() const;

 private:
  // Sums over tokens.
  struct OfPlace {
    std::vector<double> apart;    // of each stream
    std::vector<double> weights;  // the same, or empty
    double mix = 0;
    bool mixes = false;
    double tokens = 0;
  };

  residual::Streams between(size_t next, residual::Streams streams) override;
  static void see_weights(const residual::StreamWeights& weights, double tokens, OfPlace& place);

  const models::Model& model_;
  std::vector<OfPlace> places_;
};

}  // namespace siamese::eval
