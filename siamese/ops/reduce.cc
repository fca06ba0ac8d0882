#include "siamese/ops/reduce.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "siamese/kernels/partition.h"
#include "siamese/kernels/reduce.h"
#include "siamese/ops/arguments.h"
#include "siamese/ops/library.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/one_thread.h"
#include "siamese/ops/wide.h"

namespace siamese::ops {

namespace plain {

at::Tensor fixed_sum(const at::Tensor& x) {
  constexpr int64_t kChunk = 16384;  // below the size at which ATen's own sum goes parallel
  std::vector<at::Tensor> parts;
  for (const auto& chunk : wide(x).reshape({-1}).split(kChunk)) parts.push_back(chunk.sum());
  at::Tensor total = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) total = total + parts[i];
  return total.to(x.scalar_type());
}

at::Tensor sum_squares_of(at::TensorList tensors) {
  at::Tensor total;
  for (const auto& tensor : tensors) {
    const at::Tensor sum = fixed_sum(tensor.detach().to(exact_type(tensor.device())).square());
    total = total.defined() ? total + sum : sum;
  }
  return total.defined() ? total : at::zeros({}, at::kDouble);
}

}  // namespace plain

namespace reduce_detail {

// A range of one array, and its sum.
struct Part {
  const float* data;
  int64_t begin;
  int64_t end;
  double sum;
};

void cut(const at::Tensor& dense, std::vector<Part>& parts) {
  const kernels::Partition partition = kernels::partition_elements(dense.numel());
  for (int64_t part = 0; part < partition.parts; ++part) {
    parts.push_back({dense.const_data_ptr<float>(), partition.begin(part), partition.end(part), 0});
  }
}

template <class Kernel>
double sum_of_parts(std::vector<Part>& parts, Kernel kernel) {
  at::parallel_for(0, static_cast<int64_t>(parts.size()), 4, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      Part& part = parts[static_cast<size_t>(i)];
      part.sum = kernel(part.data, part.begin, part.end);
    }
  });
  double total = 0;
  for (const auto& part : parts) total += part.sum;
  return total;
}

}  // namespace reduce_detail

// The gradient is the one that came at every element: a view, no part of its own.
namespace fixed_sum_op {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

at::Tensor plain_forward(const at::Tensor& x) {
  const Arguments check("fixed_sum", "x", x);
  const OneThread one_thread;
  return plain::fixed_sum(x);
}

at::Tensor fused_forward(const at::Tensor& x) {
  const Arguments check("fixed_sum", "x", x);
  if (!use_fused("fixed_sum", {x})) return plain_forward(x);
  const at::Tensor dense = x.contiguous();
  std::vector<reduce_detail::Part> parts;
  reduce_detail::cut(dense, parts);
  return at::scalar_tensor(reduce_detail::sum_of_parts(parts, kernels::sum), x.options());
}

at::Tensor meta_forward(const at::Tensor& x) {
  const Arguments check("fixed_sum", "x", x);
  return at::empty({}, x.options());
}

class Pair : public torch::autograd::Function<Pair> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x) {
    const at::AutoDispatchBelowAutograd below;
    static const auto op = find_op("fixed_sum_forward", fused_forward);
    context->saved_data["sizes"] = x.sym_sizes();
    return op.call(x);
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    return {grads[0].expand_symint(context->saved_data["sizes"].toSymIntVector())};
  }
};

at::Tensor pair(const at::Tensor& x) { return Pair::apply(x); }

at::Tensor alone(const at::Tensor& x) {
  static const auto op = find_op("fixed_sum_forward", fused_forward);
  return op.call(x);
}

TORCH_LIBRARY_FRAGMENT(siamese, library) {
  define_pair(library, "fixed_sum(Tensor x) -> Tensor", pair, alone);
  define_part(library, "fixed_sum_forward(Tensor x) -> Tensor", plain_forward, fused_forward, meta_forward);
}

}  // namespace fixed_sum_op

// A measurement: nothing flows back through it.
namespace sum_squares_op {

void check(at::TensorList tensors) {
  for (const auto& tensor : tensors) {
    const Arguments arguments("sum_squares", "tensors", tensor);
    arguments.require(tensor.device() == tensors[0].device(), "tensors",
                      tensors[0].device().str() + ", where the first one is", tensor.device().str());
  }
}

at::Tensor plain_sum(at::TensorList tensors) {
  check(tensors);
  const OneThread one_thread;
  return plain::sum_squares_of(tensors);
}

at::Tensor fused_sum(at::TensorList tensors) {
  check(tensors);
  std::vector<at::Tensor> dense;
  for (const auto& tensor : tensors) {
    if (!use_fused("sum_squares", {tensor})) return plain_sum(tensors);
    dense.push_back(tensor.contiguous());
  }
  std::vector<reduce_detail::Part> parts;
  for (const auto& tensor : dense) reduce_detail::cut(tensor, parts);
  return at::scalar_tensor(reduce_detail::sum_of_parts(parts, kernels::sum_squares), at::kDouble);
}

at::Tensor meta_sum(at::TensorList tensors) {
  check(tensors);
  return at::empty({}, tensors[0].options().dtype(at::kDouble));
}

at::Tensor without_gradient(at::TensorList tensors) {
  const at::AutoDispatchBelowAutograd below;
  static const auto op = find_op("sum_squares", fused_sum);
  return op.call(tensors);
}

TORCH_LIBRARY_FRAGMENT(siamese, library) {
  library.def("sum_squares(Tensor[] tensors) -> Tensor", {at::Tag::pt2_compliant_tag});
  library.impl("sum_squares", torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, plain_sum));
  library.impl("sum_squares", torch::dispatch(c10::DispatchKey::CPU, fused_sum));
  library.impl("sum_squares", torch::dispatch(c10::DispatchKey::Meta, meta_sum));
  library.impl("sum_squares", torch::dispatch(c10::DispatchKey::Autograd, without_gradient));
}

}  // namespace sum_squares_op

at::Tensor fixed_sum(const at::Tensor& x) {
  static const auto op = find_op("fixed_sum", fixed_sum_op::pair);
  return op.call(x);
}

at::Tensor log_sum_exp(const at::Tensor& x) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  // Infinities are not subtracted: they would become NaN.
  const at::Tensor top = x.detach().amax(-1, true);
  const at::Tensor shift = top.masked_fill((top == kInfinity).bitwise_or(top == -kInfinity), 0);
  return ((x - shift).exp().sum(-1, true).log() + shift).squeeze(-1);
}

at::Tensor sum_squares_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> defined;
  std::copy_if(tensors.begin(), tensors.end(), std::back_inserter(defined), [](const auto& t) { return t.defined(); });
  static const auto op = find_op("sum_squares", sum_squares_op::fused_sum);
  return op.call(defined);
}

double sum_squares(const std::vector<at::Tensor>& tensors) { return sum_squares_of(tensors).item<double>(); }

double sum_squares(const at::Tensor& tensor) { return sum_squares(std::vector<at::Tensor>{tensor}); }

std::vector<double> read_numbers(const std::vector<at::Tensor>& tensors) {
  if (tensors.empty()) return {};
  std::vector<at::Tensor> flat;
  for (const auto& tensor : tensors) flat.push_back(tensor.detach().reshape({-1}).to(exact_type(tensor.device())));
  const at::Tensor all = at::cat(flat).to(at::kCPU, at::kDouble);
  return {all.const_data_ptr<double>(), all.const_data_ptr<double>() + all.numel()};
}

double rms(const at::Tensor& tensor) {
  return tensor.numel() == 0 ? 0 : std::sqrt(sum_squares(tensor) / static_cast<double>(tensor.numel()));
}

}  // namespace siamese::ops
