// What hyper-connections share: n streams s0 ... that open as copies of the embedding, are mixed at every site, and
// close with the norm of their sum.
//   read   branch input = LN( sum_i m_i s_i )
//   write  s_j <- sum_i M_ji s_i + b_j O
// m (n), M (n x n) and b (n) are what a scheme's `mixing` says of the streams at the read. Each of the two lines is one
// fused pass (ops/stream_mix.h), for up to four streams; M waits for the write, so that the streams are read there and
// written once.
#pragma once

#include "siamese/residual/topology.h"

namespace siamese::residual {

// For each token, or (without the leading dimensions) the same for all tokens.
struct Mixing {
  at::Tensor input;    // m: [..., n]
  at::Tensor streams;  // M: [..., n, n]
  at::Tensor output;   // b: [..., n]
};

class MixingJunction : public Junction {
 public:
  MixingJunction(const nn::Scope& scope, const Site& site, const Build& build);

  ReadResult read(const Streams& streams, Recorder* recorder) const final;
  Streams write(const Streams& streams, const Branch& branch) const final;
  StreamWeights weights(const Streams& streams) const final;

 protected:
  // streams: n of [..., width]; a pass over them may leave those to go on with in their place.
  virtual Mixing mixing(std::vector<at::Tensor>& streams) const = 0;

  // A parameter of the mixing for each token of a stream: [..., its shape].
  static at::Tensor for_each_token(const at::Tensor& parameter, const at::Tensor& stream);

 private:
  nn::Norm norm_;
};

class ManyStreams : public Topology {
 public:
  ManyStreams(const nn::Scope& scope, const Build& build, int64_t count);

  Streams open(const at::Tensor& embedding) const override;
  at::Tensor close(const Streams& streams) const override;
  std::string_view lost_without_true_norm() const override { return "it does not start as Pre-Norm"; }

 protected:
  const Build& build() const { return build_; }

 private:
  Build build_;
  int64_t count_;
  nn::Norm final_norm_;
};

// UsageError unless 1 <= count <= 16: beyond that the mixing, n x n a token, is larger than any use of it.
void check_stream_count(const char* key, int64_t count);

}  // namespace siamese::residual
