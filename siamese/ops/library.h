// How an op of this room is registered with LibTorch's dispatcher, so that it holds for any caller: C++, Python
// (torch.ops.siamese), torch.compile. An op `x` is three:
//   x_forward    inputs -> outputs and what backward needs of them
//   x_backward   gradients of outputs (absent: 0), what forward saw and made -> gradients of inputs
//   x            their autograd pair, what people call
// The first two are functions of their arguments alone: nothing is changed in place and no output is an input. What
// backward was not asked for comes back as a tensor without elements. Each has three kernels:
//   plain   the expression in LibTorch's own operators: the meaning, for any device and type
//   fused   our kernel, on the CPU; it gives types it has no code for to plain (ops/mode.h)
//   meta    shapes only; its sizes may be symbols
// A second derivative raises. An op without gradient is one such part, under its own name.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

namespace siamese::ops {

inline std::string op_name(const std::string& schema) { return schema.substr(0, schema.find('(')); }

// x_forward or x_backward.
template <class Plain, class Fused, class Meta>
void define_part(torch::Library& library, const std::string& schema, Plain* plain, Fused* fused, Meta* meta) {
  library.def(schema.c_str(), {at::Tag::pt2_compliant_tag});
  const std::string name = op_name(schema);
  library.impl(name.c_str(), torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, plain));
  library.impl(name.c_str(), torch::dispatch(c10::DispatchKey::CPU, fused));
  library.impl(name.c_str(), torch::dispatch(c10::DispatchKey::Meta, meta));
  library.impl(name.c_str(),
               torch::dispatch(c10::DispatchKey::Autograd, torch::autograd::autogradNotImplementedFallback()));
}

// x: `pair` records gradients, `alone` is for callers below autograd.
template <class Pair, class Alone>
void define_pair(torch::Library& library, const std::string& schema, Pair* pair, Alone* alone) {
  library.def(schema.c_str(), {at::Tag::pt2_compliant_tag});
  const std::string name = op_name(schema);
  library.impl(name.c_str(), torch::dispatch(c10::DispatchKey::Autograd, pair));
  library.impl(name.c_str(), torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, alone));
}

// The op of this name in the dispatcher, with the signature of one of its kernels. Keep it in a static.
template <class Signature>
c10::TypedOperatorHandle<Signature> find_op(const char* name, Signature*) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(("siamese::" + std::string(name)).c_str(), "")
      .typed<Signature>();
}

// An argument that may be absent, undefined then; and back.
inline at::Tensor or_undefined(const std::optional<at::Tensor>& tensor) { return tensor.value_or(at::Tensor()); }
inline std::optional<at::Tensor> as_optional(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional<at::Tensor>(tensor) : std::nullopt;
}

// What comes out of a part is dense. The second with another last dimension.
inline at::Tensor empty_dense(const at::Tensor& like) { return at::empty_like(like, at::MemoryFormat::Contiguous); }
inline at::Tensor empty_dense(const at::Tensor& like, const c10::SymInt& last) {
  std::vector<c10::SymInt> sizes = like.sym_sizes().vec();
  sizes.back() = last;
  return at::empty_symint(sizes, like.options());
}

// For an argument that a pair keeps: what forward's kernel reads dense, backward's finds dense, instead of copying a
// strided tensor once more. Seen by autograd, so that a second derivative still raises. The plain expressions of other
// devices take any strides.
inline at::Tensor dense_once(const at::Tensor& given) {
  return given.defined() && given.is_cpu() ? given.contiguous() : given;
}
inline std::vector<at::Tensor> dense_once(at::TensorList given) {
  std::vector<at::Tensor> result;
  for (const at::Tensor& tensor : given) result.push_back(dense_once(tensor));
  return result;
}

// What a backward part gives for a gradient that nobody wants, and what a pair makes of that.
inline at::Tensor no_gradient(const at::Tensor& like) { return at::empty({0}, like.options()); }
inline at::Tensor if_wanted(bool wanted, const at::Tensor& gradient) { return wanted ? gradient : at::Tensor(); }

// Which tensor arguments of a pair want a gradient. Autograd counts those that are there; `present` says for all, in
// the order of the arguments, which are.
inline std::vector<bool> wanted_gradients(torch::autograd::AutogradContext* context, const std::vector<bool>& present) {
  std::vector<bool> wanted;
  size_t edge = 0;
  for (const bool there : present) wanted.push_back(there && context->needs_input_grad(edge++));
  return wanted;
}

// In a pair's backward: straight to the kernel, unless gradients of gradients are asked for, which then raise.
class BelowAutograd {
 public:
  BelowAutograd() {
    if (!c10::GradMode::is_enabled()) guard_.emplace();
  }

 private:
  std::optional<at::AutoDispatchBelowAutograd> guard_;
};

}  // namespace siamese::ops
