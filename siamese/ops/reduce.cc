#include "siamese/ops/reduce.h"

#include <cmath>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include "siamese/kernels/partition.h"
#include "siamese/kernels/reduce.h"
#include "siamese/ops/mode.h"

namespace siamese::ops {
namespace {

constexpr int64_t kPlainChunk = 16384;  // below the size at which ATen's own sum goes parallel

template <class Kernel>
double reduce_parts(const at::Tensor& x, Kernel kernel) {
  const kernels::Partition partition = kernels::partition_elements(x.numel());
  std::vector<double> parts(static_cast<size_t>(partition.parts));
  const float* const data = x.const_data_ptr<float>();
  at::parallel_for(0, partition.parts, 4, [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part) {
      parts[static_cast<size_t>(part)] = kernel(data, partition.begin(part), partition.end(part));
    }
  });
  double total = 0;
  for (const double part : parts) total += part;
  return total;
}

class FixedSum : public torch::autograd::Function<FixedSum> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x) {
    context->saved_data["shape"] = x.sizes().vec();
    return at::scalar_tensor(reduce_parts(x.contiguous(), kernels::sum), x.options());
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               const torch::autograd::tensor_list& grads) {
    return {grads[0].expand(context->saved_data["shape"].toIntVector())};
  }
};

}  // namespace

namespace plain {

at::Tensor fixed_sum(const at::Tensor& x) {
  std::vector<at::Tensor> parts;
  for (const auto& chunk : x.reshape({-1}).split(kPlainChunk)) parts.push_back(chunk.sum());
  at::Tensor total = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) total = total + parts[i];
  return total;
}

double sum_squares(const at::Tensor& tensor) {
  return fixed_sum(tensor.detach().to(at::kDouble).square()).item<double>();
}

}  // namespace plain

at::Tensor fixed_sum(const at::Tensor& x) {
  if (x.numel() == 0 || !use_fused("fixed_sum", {x})) return plain::fixed_sum(x);
  return FixedSum::apply(x);
}

double sum_squares(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return 0;
  if (!use_fused("sum_squares", {tensor})) return plain::sum_squares(tensor);
  return reduce_parts(tensor.detach().contiguous(), kernels::sum_squares);
}

double sum_squares(const std::vector<at::Tensor>& tensors) {
  struct Part {
    const float* data;
    int64_t begin;
    int64_t end;
    double sum;
  };
  std::vector<Part> parts;
  double total = 0;
  for (const auto& tensor : tensors) {
    if (!tensor.defined() || tensor.numel() == 0) continue;
    if (!tensor.is_contiguous() || !use_fused("sum_squares", {tensor})) {
      total += plain::sum_squares(tensor);
      continue;
    }
    const kernels::Partition partition = kernels::partition_elements(tensor.numel());
    for (int64_t part = 0; part < partition.parts; ++part) {
      parts.push_back({tensor.const_data_ptr<float>(), partition.begin(part), partition.end(part), 0});
    }
  }
  at::parallel_for(0, static_cast<int64_t>(parts.size()), 4, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      Part& part = parts[static_cast<size_t>(i)];
      part.sum = kernels::sum_squares(part.data, part.begin, part.end);
    }
  });
  for (const auto& part : parts) total += part.sum;
  return total;
}

double rms(const at::Tensor& tensor) {
  return tensor.numel() == 0 ? 0 : std::sqrt(sum_squares(tensor) / static_cast<double>(tensor.numel()));
}

}  // namespace siamese::ops
