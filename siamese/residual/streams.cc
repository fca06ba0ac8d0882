#include "siamese/residual/streams.h"

#include <utility>

#include <ATen/ATen.h>

#include "siamese/base/check.h"
#include "siamese/ops/modulate.h"

namespace siamese::residual {

namespace streams_detail {

[[noreturn]] void wrong(const std::string& what, size_t expected, const std::string& of_what, size_t got) {
  throw UsageError("streams: " + what + ": expected " + std::to_string(expected) + " " + of_what + ", got " +
                   std::to_string(got));
}

const at::Tensor& defined(const at::Tensor& tensor, const std::string& what) {
  if (!tensor.defined()) throw UsageError("streams: " + what + ": expected a tensor, got an undefined one");
  return tensor;
}

}  // namespace streams_detail

const at::Tensor& Streams::operator[](size_t i) const {
  if (i >= list.size()) streams_detail::wrong("stream " + std::to_string(i), i + 1, "streams at least", list.size());
  return list[i].value;
}

Streams Streams::replaced(std::vector<at::Tensor> values) const {
  if (values.size() != list.size()) streams_detail::wrong("replaced", list.size(), "values", values.size());
  Streams next;
  next.rounds_input = rounds_input;
  for (size_t i = 0; i < list.size(); ++i) next.list.push_back({list[i].name, std::move(values[i])});
  return next;
}

Streams Streams::with(std::string name, at::Tensor value) const {
  if (pending)
    throw UsageError("streams: with " + name + ": expected no pending branch, got one that was not read yet");
  Streams next;
  next.rounds_input = rounds_input;
  next.list = list;
  next.list.push_back({std::move(name), std::move(value)});
  return next;
}

Streams Streams::deferring(Pending deferred) const {
  if (pending) throw UsageError("streams: deferring: expected no pending branch, got one that was not read yet");
  const size_t count = deferred.coefficients.size();
  if (count != list.size()) streams_detail::wrong("deferring", list.size(), "coefficients", count);
  if (deferred.output_norm.pointwise()) {
    const at::Tensor value = deferred.branch.value.to((*this)[0].scalar_type());
    deferred.branch.value = ops::apply(std::exchange(deferred.output_norm, {}), value);
  }
  Streams next;
  next.rounds_input = rounds_input;
  next.list = list;
  next.pending = std::move(deferred);
  return next;
}

at::Tensor gated(const Branch& branch) {
  const at::Tensor& gate = branch.gate;
  if (!gate.defined()) return branch.value;
  // One number for each channel of a sample, or one for each sample.
  return gate.dim() == 3 && branch.value.dim() == 3 && gate.sym_size(2) == branch.value.sym_size(2) &&
                 gate.sym_size(1) == 1
             ? ops::gate(branch.value, gate.squeeze(1))
             : gate * branch.value;
}

Streams flush(const Streams& streams) {
  if (!streams.pending) return streams;
  const Pending& pending = *streams.pending;
  const at::Tensor branch = gated({ops::apply(pending.output_norm, pending.branch.value), pending.branch.gate});
  Streams next = streams;
  next.pending.reset();
  for (size_t i = 0; i < next.list.size(); ++i) {
    const double coefficient = pending.coefficients[i];
    if (coefficient != 0) next.list[i].value = at::add(streams[i], branch, coefficient);
  }
  return next;
}

namespace streams_detail {

// Zeros where `keeps` says no.
template <class Keeps>
Streams kept(const Streams& streams, size_t index, const Keeps& keeps) {
  if (streams.pending) throw UsageError("streams: expected no pending branch, got one that was not added yet");
  streams[index];
  Streams next = streams;
  for (size_t i = 0; i < next.list.size(); ++i) {
    if (!keeps(i)) next.list[i].value = at::zeros_like(next.list[i].value);
  }
  return next;
}

}  // namespace streams_detail

Streams alone(const Streams& streams, size_t index) {
  return streams_detail::kept(streams, index, [index](size_t i) { return i == index; });
}

Streams without(const Streams& streams, size_t index) {
  return streams_detail::kept(streams, index, [index](size_t i) { return i != index; });
}

size_t StreamsLayout::tensors() const {
  size_t count = names.size() + handed;
  if (pending)
    count += 1U + (pending->has_gain ? 1U : 0U) + (pending->has_bias ? 1U : 0U) + (pending->has_gate ? 1U : 0U);
  return count;
}

FlatStreams flatten(const Streams& streams) {
  FlatStreams flat;
  const auto take = [&](const at::Tensor& tensor, const std::string& what) {
    flat.tensors.push_back(streams_detail::defined(tensor, what));
  };
  const auto take_if_there = [&](const at::Tensor& tensor) {
    if (tensor.defined()) flat.tensors.push_back(tensor);
    return tensor.defined();
  };
  for (const auto& stream : streams.list) {
    take(stream.value, stream.name);
    flat.layout.names.push_back(stream.name);
  }
  for (const auto& tensor : streams.handed) take(tensor, "what a read handed on");
  flat.layout.handed = streams.handed.size();
  flat.layout.rounds_input = streams.rounds_input;
  if (!streams.pending) return flat;
  const Pending& pending = *streams.pending;
  StreamsLayout::Deferred& deferred = flat.layout.pending.emplace();
  deferred.coefficients = pending.coefficients;
  deferred.output_norm = pending.output_norm;
  deferred.output_norm.gain = deferred.output_norm.bias = at::Tensor();
  take(pending.branch.value, "the pending branch");
  deferred.has_gain = take_if_there(pending.output_norm.gain);
  deferred.has_bias = take_if_there(pending.output_norm.bias);
  deferred.has_gate = take_if_there(pending.branch.gate);
  return flat;
}

Streams unflatten(const StreamsLayout& layout, at::TensorList tensors) {
  const size_t expected = layout.tensors();
  if (tensors.size() != expected) streams_detail::wrong("flat list", expected, "tensors", tensors.size());
  auto next = tensors.begin();
  const auto give = [&](bool there) { return there ? streams_detail::defined(*next++, "flat list") : at::Tensor(); };
  Streams streams;
  streams.rounds_input = layout.rounds_input;
  for (const auto& name : layout.names) streams.list.push_back({name, give(true)});
  for (size_t i = 0; i < layout.handed; ++i) streams.handed.push_back(give(true));
  if (!layout.pending) return streams;
  const StreamsLayout::Deferred& deferred = *layout.pending;
  Pending& pending = streams.pending.emplace();
  pending.coefficients = deferred.coefficients;
  pending.output_norm = deferred.output_norm;
  pending.branch.value = give(true);
  pending.output_norm.gain = give(deferred.has_gain);
  pending.output_norm.bias = give(deferred.has_bias);
  pending.branch.gate = give(deferred.has_gate);
  return streams;
}

}  // namespace siamese::residual
