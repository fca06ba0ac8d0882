#include "siamese/eval/depth_gradients.h"

#include <cmath>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "siamese/eval/site_gradients.h"
#include "siamese/ops/reduce.h"

namespace siamese::eval {

namespace depth_gradients_detail {

// The tensor as one of its own, whose whole gradient is added to `squares` in backward.
at::Tensor watched(const at::Tensor& tensor, double& squares) {
  if (!tensor.requires_grad()) return tensor;
  at::Tensor own = at::alias(tensor);
  own.register_hook([&squares](const at::Tensor& gradient) { squares += ops::sum_squares(gradient); });
  return own;
}

}  // namespace depth_gradients_detail

DepthGradients::DepthGradients(const models::Model& model, double weight)
    : model_(model),
      weight_(weight),
      streams_(model.stack().sites().size() + 1),
      inputs_(model.stack().sites().size(), 0.0) {
  model.parameters().zero_grad();
}

DepthGradients::~DepthGradients() { model_.parameters().zero_grad(); }

void DepthGradients::add(const GivenBatch& batch) {
  const c10::AutoGradMode with_gradients(true);
  model_.losses(batch.inputs, {.stack = {.intervention = this}, .normalizer = weight_}).objective.backward();
}

// A pending branch is only added: the gradient of a stream is that of the sum.
residual::Streams DepthGradients::between(size_t next, residual::Streams streams) {
  for (residual::Stream& stream : streams.list) {
    stream.value = depth_gradients_detail::watched(stream.value, streams_[next][stream.name]);
  }
  return streams;
}

at::Tensor DepthGradients::input(const residual::Site& site, at::Tensor input) {
  return depth_gradients_detail::watched(input, inputs_[static_cast<size_t>(site.index)]);
}

void DepthGradients::fill(runs::AnalysisRecord& record) const {
  const std::vector<residual::Site>& sites = model_.stack().sites();
  for (size_t i = 0; i < record.places.size(); ++i) {
    runs::PlaceAnalysis& place = record.places[i];
    for (runs::StreamAnalysis& stream : place.streams) {
      const auto found = streams_[i].find(stream.name);
      if (found != streams_[i].end()) stream.gradient = std::sqrt(found->second);
    }
    if (!place.branch) continue;
    place.branch->input_gradient = std::sqrt(inputs_[i]);
    place.branch->parameter_gradient = std::sqrt(ops::sum_squares(site_gradients(model_.parameters(), sites[i])));
  }
}

}  // namespace siamese::eval
