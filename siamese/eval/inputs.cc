#include "siamese/eval/inputs.h"

#include <cstring>
#include <numeric>

#include <ATen/ATen.h>

namespace siamese::eval {
namespace {

// Rows [first, first + shape[0]) of `values` as a tensor of that shape; undefined when there are none.
template <class T>
at::Tensor rows_of(const std::vector<T>& values, int64_t first, at::IntArrayRef shape) {
  if (values.empty()) return {};
  at::Tensor tensor = at::empty(shape, at::CppTypeToScalarType<T>::value);
  std::memcpy(tensor.mutable_data_ptr(), values.data() + first * (tensor.numel() / shape[0]), tensor.nbytes());
  return tensor;
}

std::vector<std::vector<int64_t>> borders_of(const std::vector<std::vector<int64_t>>& all, int64_t first,
                                             int64_t rows) {
  if (all.empty()) return {};
  return {all.begin() + first, all.begin() + first + rows};
}

}  // namespace

models::Inputs to_inputs(const data::Batch& batch, int64_t first, int64_t rows) {
  const data::SampleShape& shape = batch.shape;
  return {.tokens = rows_of(batch.tokens, first, {rows, shape.context + 1}),
          .weights = rows_of(batch.weights, first, {rows, shape.context}),
          .images = rows_of(batch.images, first, {rows, shape.channels, shape.image, shape.image}),
          .labels = rows_of(batch.labels, first, {rows}),
          .targets = rows_of(batch.targets, first, {rows, shape.classes}),
          .borders = borders_of(batch.borders, first, rows),
          .first_position = batch.first_position + static_cast<uint64_t>(first)};
}

models::Inputs to_inputs(const data::Batch& batch) { return to_inputs(batch, 0, batch.rows); }

double total_weight(const data::Batch& batch) {
  if (batch.shape.is_image()) return static_cast<double>(batch.rows);
  return std::accumulate(batch.weights.begin(), batch.weights.end(), 0.0);
}

}  // namespace siamese::eval
