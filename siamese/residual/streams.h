// The hidden states that run the depth of a model, as a value: named tensors, at most one branch that was written but
// not yet added, and what a read hands to its own write. Nothing here is ever overwritten in place.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/nn/norm.h"

namespace siamese::residual {

// What a sublayer computed. The gate (DiT, drop-path) multiplies after the scheme's own output norm and before any
// depth scale; undefined means 1.
struct Branch {
  at::Tensor value;
  at::Tensor gate;
};

// The value times the gate.
at::Tensor gated(const Branch& branch);

// A deferred write: stream_i <- stream_i + coefficients[i] * gate * output_norm(value). It describes itself, so that
// any junction can follow any other, and the next read can do all of it in one pass over memory.
struct Pending {
  Branch branch;
  std::vector<double> coefficients;       // one per stream; 0 leaves the stream alone
  const nn::Norm* output_norm = nullptr;  // the writer's; the junction outlives the streams
};

struct Stream {
  std::string name;
  at::Tensor value;
};

struct Streams {
  std::vector<Stream> list;
  std::optional<Pending> pending;
  std::vector<at::Tensor> handed;  // from a read to the write of the same site

  const at::Tensor& operator[](size_t i) const { return list[i].value; }

  // The same streams with other values, nothing pending.
  Streams replaced(std::vector<at::Tensor> values) const;
  // The same streams with `pending` deferred.
  Streams deferring(Pending pending) const;
};

// The pending branch added to every stream: the one generic meaning of a deferred write.
Streams flush(const Streams& streams);

// Streams as a list of tensors and back, for checkpointing, probes and tests.
struct FlatStreams {
  std::vector<at::Tensor> tensors;
  Streams layout;  // everything but the tensors
};
FlatStreams flatten(const Streams& streams);
Streams unflatten(const Streams& layout, const std::vector<at::Tensor>& tensors);

}  // namespace siamese::residual
