// A model watched at every place on its way down, pass after pass: statistics of streams and branches, what a lens
// reads there, the largest values. Nothing is changed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "siamese/eval/attention_sinks.h"
#include "siamese/eval/given_batch.h"
#include "siamese/eval/lens_sums.h"
#include "siamese/eval/state_rows.h"
#include "siamese/eval/value_sums.h"
#include "siamese/models/weights.h"

namespace siamese::eval {

// A lens of one stream costs a product with the head: where a scheme has more streams than this (attn_res), all of them
// together are read alone. The same for pairs of streams.
inline constexpr size_t kMostStreamsApart = 8;
inline constexpr size_t kMostPeaks = 32;

class Look : private models::Intervention, private models::AttentionWatch, private residual::Recorder {
 public:
  explicit Look(const models::Model& model);

  // `most_lens`: tokens of this batch that a lens reads (images of a batch are all read). `first_sample`: of the batch,
  // in what is looked at.
  void add(const GivenBatch& batch, int64_t most_lens, int64_t first_sample);

  double loss() const { return loss_ / weight_; }  // mean, of all that was added
  // All places, the losses of changed passes and gradients still missing; and the largest values.
  void fill(runs::AnalysisRecord& record) const;
  // Mean norm of a stream's tokens by place and position (stream/<name>/norm [places, positions], NaN where it is not),
  // how alike the states at two places are (similarity/cosine, similarity/cka [places, places]), and where attention
  // goes (attention/first [blocks, heads, positions], attention/largest [blocks, heads]).
  std::vector<models::NamedTensor> tensors() const;

 private:
  struct OfStream {
    ValueSums values;
    TokenMeanSums token_mean;
    CosineSums next, branch;
    LensSums lens;
    std::vector<double> position_norms;
  };
  struct OfPlace {
    std::vector<std::string> names;
    std::map<std::string, OfStream> streams;
    std::map<std::pair<std::string, std::string>, CosineSums> pairs;
    LensSums lens;
    ValueSums input, output;  // of the branch
  };
  // What a lens will read once the whole output is known: the states, by stream; the last is that of all.
  struct Waiting {
    std::vector<std::string> names;
    std::vector<at::Tensor> states;
  };

  residual::Streams between(size_t next, residual::Streams streams) override;
  void stream(const residual::Site&, const std::string&, const at::Tensor&, const at::Tensor&) override {}
  void branch(const residual::Site& site, const at::Tensor& input, const at::Tensor& output) override;
  void attention(const residual::Site& site, const models::WatchedAttention& watched) override;

  void see(OfPlace& place, const residual::Streams& streams);
  void see_norms(OfStream& of, const at::Tensor& values);
  void see_peaks(size_t place, const residual::Stream& stream);
  void wait_for_output(size_t place, const residual::Streams& streams);
  void read_out();
  std::vector<models::NamedTensor> sink_tensors() const;

  const models::Model& model_;
  std::vector<OfPlace> places_;
  std::vector<SinkSums> sinks_;  // of each block
  StateRows rows_;
  std::vector<runs::PeakAnalysis> peaks_;  // the largest of all so far, the largest first
  at::Tensor expert_counts_;               // moe: [blocks, experts], tokens sent to each
  double samples_ = 0, loss_ = 0, weight_ = 0;
  // Of the batch that is being looked at.
  const GivenBatch* batch_ = nullptr;
  int64_t first_sample_ = 0;
  at::Tensor read_rows_;  // int64: rows of [batch x tokens] that a lens reads
  int64_t most_rows_ = 0;
  residual::Streams before_;
  std::vector<Waiting> waiting_;
};

}  // namespace siamese::eval
