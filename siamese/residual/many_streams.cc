#include "siamese/residual/many_streams.h"

#include <ATen/ATen.h>

#include "siamese/base/check.h"
#include "siamese/ops/row_linear.h"
#include "siamese/ops/stream_mix.h"

namespace siamese::residual {

MixingJunction::MixingJunction(const nn::Scope& scope, const Site& site, const Build& build)
    : Junction(site), norm_(scope.child("norm"), build.width, build.branch_input_norm()) {}

ReadResult MixingJunction::read(const Streams& streams, Recorder* recorder) const {
  const Streams now = flush(streams);
  std::vector<at::Tensor> values;
  for (const auto& stream : now.list) {
    record(recorder, stream.name, stream.value, {});
    values.push_back(stream.value);
  }
  const Mixing mix = mixing(values);
  // Of streams in bfloat16 the sums behind the coefficients are floats.
  const auto as_streams = [&](const at::Tensor& weights) { return weights.to(values[0].scalar_type()); };
  ops::StreamRead made = ops::stream_read(values, as_streams(mix.input), norm_.step(), now.rounds_input);
  Streams next = now.replaced(std::move(made.streams));
  next.handed = {as_streams(mix.streams), as_streams(mix.output)};
  return {std::move(next), std::move(made.input)};
}

Streams MixingJunction::write(const Streams& streams, const Branch& branch) const {
  if (streams.handed.size() != 2) throw UsageError("write: expected the streams of this site's read, got others");
  std::vector<at::Tensor> values;
  for (const auto& stream : streams.list) values.push_back(stream.value);
  const at::Tensor value = gated(branch).to(streams[0].scalar_type());  // which PyTorch's autocast computes in bfloat16
  return streams.replaced(ops::stream_mix(values, streams.handed[0], value, streams.handed[1]));
}

StreamWeights MixingJunction::weights(const Streams& streams) const {
  std::vector<at::Tensor> values;
  for (const auto& stream : flush(streams).list) values.push_back(stream.value);
  const Mixing mix = mixing(values);
  return {mix.input, mix.streams};
}

at::Tensor MixingJunction::for_each_token(const at::Tensor& parameter, const at::Tensor& stream) {
  return ops::for_each_row(parameter, stream.sym_sizes().slice(0, static_cast<size_t>(stream.dim() - 1)));
}

ManyStreams::ManyStreams(const nn::Scope& scope, const Build& build, int64_t count) : build_(build), count_(count) {
  if (!build.modulated) final_norm_ = nn::Norm(scope.child("close").child("norm"), build.width, build.norm);
}

Streams ManyStreams::open(const at::Tensor& embedding) const {
  Streams streams;
  for (int64_t j = 0; j < count_; ++j) streams.list.push_back({"s" + std::to_string(j), embedding});
  return streams;
}

at::Tensor ManyStreams::close(const Streams& streams) const {
  const Streams now = flush(streams);
  at::Tensor sum = now[0];
  for (size_t j = 1; j < now.list.size(); ++j) sum = sum + now[j];
  return final_norm_(sum);
}

void check_stream_count(const char* key, int64_t count) {
  if (count < 1 || count > 16) {
    throw UsageError(std::string(key) + ": expected a number of streams from 1 to 16, got " + std::to_string(count));
  }
}

}  // namespace siamese::residual
