// The hidden states that run the depth of a model, as a value: named tensors, at most one branch that was written but
// not yet added, and what a read hands to its own write. Nothing here is ever overwritten in place.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/ops/norm_step.h"

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
// any junction can follow any other, and the next read can do all of it in one pass over memory. An element-wise output
// norm has nothing to share with that pass: `Streams::deferring` applies it at once.
struct Pending {
  Branch branch;
  std::vector<double> coefficients;  // one per stream; 0 leaves the stream alone
  ops::NormStep output_norm = {};    // the writer's, with its gain as it was at the write; absent: the value itself
};

struct Stream {
  std::string name;
  at::Tensor value;
};

struct Streams {
  std::vector<Stream> list;
  std::optional<Pending> pending;
  std::vector<at::Tensor> handed;  // from a read to the write of the same site
  // A read may give its branch input in bfloat16, as products take it (ops/operand.h); where the pass over the streams
  // can, that costs no pass of its own. The branch then comes back in bfloat16 too.
  bool rounds_input = false;

  // UsageError when there is none.
  const at::Tensor& operator[](size_t i) const;

  // The same streams with other values, nothing pending. UsageError when their number differs.
  Streams replaced(std::vector<at::Tensor> values) const;
  // The same streams and one more at the end: a scheme may gain streams on its way down, or lose them (topology.h).
  // UsageError when a branch is pending, whose coefficients are one for each stream.
  Streams with(std::string name, at::Tensor value) const;
  // The same streams with `pending` deferred. UsageError when a branch is pending already, or when there is not one
  // coefficient for each stream.
  Streams deferring(Pending pending) const;
};

// The pending branch added to every stream: the one generic meaning of a deferred write.
Streams flush(const Streams& streams);

// The same streams with zeros in the place of all but one, or of one. UsageError when a branch is pending, or when
// there is no such stream.
Streams alone(const Streams& streams, size_t index);
Streams without(const Streams& streams, size_t index);

// Everything of streams but their tensors. It depends on the scheme, the place in it and whether the last branch had a
// gate, never on the tensors.
struct StreamsLayout {
  struct Deferred {
    std::vector<double> coefficients;
    ops::NormStep output_norm;  // without its tensors
    bool has_gain = false;
    bool has_bias = false;
    bool has_gate = false;
  };
  std::vector<std::string> names;
  size_t handed = 0;
  bool rounds_input = false;
  std::optional<Deferred> pending;

  size_t tensors() const;  // how many a flat list has
};

// Streams as a list of tensors and back, for checkpointing, probes and functional.h: the streams, what is handed, then
// what is pending: branch, gain and bias of its norm, gate. UsageError when a list has another length.
struct FlatStreams {
  std::vector<at::Tensor> tensors;
  StreamsLayout layout;
};
FlatStreams flatten(const Streams& streams);
Streams unflatten(const StreamsLayout& layout, at::TensorList tensors);

}  // namespace siamese::residual
