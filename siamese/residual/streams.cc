#include "siamese/residual/streams.h"

#include <ATen/ATen.h>

#include "siamese/base/check.h"
#include "siamese/ops/modulate.h"

namespace siamese::residual {

Streams Streams::replaced(std::vector<at::Tensor> values) const {
  SIAMESE_INVARIANT(values.size() == list.size());
  Streams next;
  for (size_t i = 0; i < list.size(); ++i) next.list.push_back({list[i].name, std::move(values[i])});
  return next;
}

Streams Streams::deferring(Pending deferred) const {
  SIAMESE_INVARIANT(!pending && deferred.coefficients.size() == list.size());
  Streams next;
  next.list = list;
  next.pending = std::move(deferred);
  return next;
}

at::Tensor gated(const Branch& branch) {
  const at::Tensor& gate = branch.gate;
  if (!gate.defined()) return branch.value;
  // One number for each channel of a sample, or one for each sample.
  return gate.dim() == 3 && gate.size(2) == branch.value.size(2) && gate.size(1) == 1
             ? ops::gate(branch.value, gate.squeeze(1))
             : gate * branch.value;
}

Streams flush(const Streams& streams) {
  if (!streams.pending) return streams;
  const Pending& pending = *streams.pending;
  const nn::Norm* const norm = pending.output_norm;
  const at::Tensor& value = pending.branch.value;
  const at::Tensor branch = gated({norm != nullptr ? (*norm)(value) : value, pending.branch.gate});
  Streams next = streams;
  next.pending.reset();
  for (size_t i = 0; i < next.list.size(); ++i) {
    const double coefficient = pending.coefficients[i];
    if (coefficient != 0) next.list[i].value = at::add(streams[i], branch, coefficient);
  }
  return next;
}

FlatStreams flatten(const Streams& streams) {
  FlatStreams flat{{}, streams};
  const auto take = [&flat](at::Tensor& tensor) {
    SIAMESE_INVARIANT(tensor.defined());
    flat.tensors.push_back(std::exchange(tensor, at::Tensor()));
  };
  for (auto& stream : flat.layout.list) take(stream.value);
  for (auto& tensor : flat.layout.handed) take(tensor);
  if (auto& pending = flat.layout.pending) {
    // A layout must tell "no gate" from "a gate to fill in": it keeps an empty tensor for the latter.
    take(pending->branch.value);
    if (pending->branch.gate.defined()) {
      flat.tensors.push_back(pending->branch.gate);
      pending->branch.gate = at::empty({0});
    }
  }
  return flat;
}

Streams unflatten(const Streams& layout, const std::vector<at::Tensor>& tensors) {
  Streams streams = layout;
  size_t next = 0;
  const auto give = [&](at::Tensor& tensor) {
    SIAMESE_INVARIANT(next < tensors.size());
    tensor = tensors[next++];
  };
  for (auto& stream : streams.list) give(stream.value);
  for (auto& tensor : streams.handed) give(tensor);
  if (streams.pending) {
    give(streams.pending->branch.value);
    if (streams.pending->branch.gate.defined()) give(streams.pending->branch.gate);
  }
  SIAMESE_INVARIANT(next == tensors.size());
  return streams;
}

}  // namespace siamese::residual
