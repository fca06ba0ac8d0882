#include "tests/support/protected_device.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include <sys/mman.h>

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include "siamese/ops/one_thread.h"

namespace siamese::testing {
namespace {

constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;
std::atomic<int64_t> reads{0};

// --- memory ---

// What stands behind the address of an array.
struct Block {
  void* numbers;
};

// Addresses are given out once and never again, so that a pointer to something freed faults too.
std::byte* next_addresses(size_t bytes) {
  constexpr size_t kPage = 4096;
  constexpr size_t kReserved = size_t{1} << 40;
  static std::byte* const first = [] {
    void* const place = mmap(nullptr, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    TORCH_CHECK(place != MAP_FAILED, "protected device: no addresses to be had");
    return static_cast<std::byte*>(place);
  }();
  static std::atomic<size_t> used{0};
  const size_t whole = (bytes / kPage + 1) * kPage;
  const size_t begin = used.fetch_add(whole);
  TORCH_CHECK(begin + whole <= kReserved, "protected device: all addresses were given out");
  return first + begin;
}

void free_block(void* context) {
  auto* const block = static_cast<Block*>(context);
  std::free(block->numbers);
  delete block;
}

class ProtectedAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    constexpr size_t kAlignment = 64;  // as LibTorch's own on the CPU: the same kernels see the same alignment
    auto* const block = new Block{std::aligned_alloc(kAlignment, (bytes / kAlignment + 1) * kAlignment)};
    return {next_addresses(bytes), block, free_block, c10::Device(kType, 0)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void*, const void*, size_t) const override { TORCH_CHECK(false, "protected device: copies tensors"); }
};

ProtectedAllocator allocator;

std::byte* numbers_of(const c10::Storage& storage) {
  return static_cast<std::byte*>(static_cast<Block*>(storage.data_ptr().get_context())->numbers);
}

// The tensor as the CPU's kernels see it; itself when it lies on the host.
at::Tensor host_view(const at::Tensor& tensor) {
  if (tensor.device().type() != kType) return tensor;
  const at::TensorOptions options = at::TensorOptions().dtype(tensor.dtype());
  if (tensor.numel() == 0) return at::empty(tensor.sizes(), options);
  auto* const first = numbers_of(tensor.storage()) + tensor.storage_offset() * static_cast<int64_t>(tensor.itemsize());
  return at::from_blob(first, tensor.sizes(), tensor.strides(), options);
}

// --- what LibTorch wants to know of a device ---

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device) const override { return getDevice(); }
  c10::Device getDevice() const override { return {kType, 0}; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const override { return c10::Stream(c10::Stream::DEFAULT, getDevice()); }
  c10::Stream getDefaultStream(c10::Device) const override { return c10::Stream(c10::Stream::DEFAULT, getDevice()); }
  c10::Stream exchangeStream(c10::Stream) const override { return c10::Stream(c10::Stream::DEFAULT, getDevice()); }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  void record(void**, const c10::Stream&, c10::DeviceIndex, c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
};

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
};

// --- kernels ---

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                 std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, &allocator, kKeys, c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(size, stride, &allocator, kKeys, c10::dtype_or_default(dtype));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool) {
  if (to.is_cpu()) ++reads;
  host_view(to).copy_(host_view(from));
  return to;
}

const at::Tensor& resize(const at::Tensor& self, at::IntArrayRef size, std::optional<at::MemoryFormat>) {
  const size_t bytes = static_cast<size_t>(c10::multiply_integers(size)) * self.itemsize();
  const c10::Storage& storage = self.storage();
  if (bytes > storage.nbytes()) {
    c10::DataPtr larger = allocator.allocate(bytes);
    if (storage.nbytes() > 0) {
      std::memcpy(static_cast<Block*>(larger.get_context())->numbers, numbers_of(storage), storage.nbytes());
    }
    storage.set_data_ptr_noswap(std::move(larger));
    storage.set_nbytes(bytes);
  }
  self.unsafeGetTensorImpl()->set_sizes_contiguous(size);
  return self;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  if (to.sizes() != from.sizes()) to.resize_(from.sizes());
  return copy_from(from, to, false);
}

at::Scalar local_scalar(const at::Tensor& self) {
  ++reads;
  return host_view(self).item();
}

// One call of an operator, given to the CPU's kernel. Its arguments are views of the same memory with the same strides,
// so that what is computed, in place or not, is what the CPU would compute, to the bit.
class HostCall {
 public:
  HostCall(const c10::OperatorHandle& op, torch::jit::Stack& stack) : op_(op), stack_(stack) {
    const auto count = static_cast<int64_t>(op.schema().arguments().size());
    for (auto value = stack.end() - count; value != stack.end(); ++value) *value = to_host(*value);
  }

  void run() {
    op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack_);
    for (const auto& [there, here] : given_) {
      if (here.sizes() == there.sizes()) continue;  // else it is an `out` that was given without elements
      there.resize_(here.sizes());
      host_view(there).copy_(here);
    }
    const auto& returns = op_.schema().returns();
    auto value = stack_.end() - static_cast<int64_t>(returns.size());
    for (size_t i = 0; i < returns.size(); ++i, ++value) {
      const c10::AliasInfo* const alias = returns[i].alias_info();
      TORCH_CHECK(alias == nullptr || alias->isWrite(), op_.schema().name(),
                  ": a view without a kernel of this device");
      *value = from_host(*value);
    }
  }

 private:
  c10::IValue to_host(const c10::IValue& value) {
    if (value.isTensor()) return to_host(value.toTensor());
    if (value.isDevice()) return c10::Device(c10::DeviceType::CPU);
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(to_host(tensor));
      return list;
    }
    if (!value.isOptionalTensorList()) return value;
    c10::List<std::optional<at::Tensor>> list;
    for (const auto& tensor : value.toOptionalTensorVector()) {
      list.push_back(tensor.has_value() ? std::optional(to_host(*tensor)) : std::nullopt);
    }
    return list;
  }

  // A real device does not read the host's tensors, except a number that was wrapped in one.
  at::Tensor to_host(const at::Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    if (tensor.device().type() != kType) {
      TORCH_CHECK(tensor.unsafeGetTensorImpl()->is_wrapped_number(), op_.schema().name(), ": a tensor of ",
                  tensor.sizes(), " on ", tensor.device(), " beside those of the protected device");
      return tensor;
    }
    given_.emplace_back(tensor, host_view(tensor));
    return given_.back().second;
  }

  c10::IValue from_host(const c10::IValue& value) const {
    if (value.isTensor()) return from_host(value.toTensor());
    if (!value.isTensorList()) return value;
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(from_host(tensor));
    return list;
  }

  at::Tensor from_host(const at::Tensor& tensor) const {
    if (!tensor.defined()) return tensor;
    for (const auto& [there, here] : given_) {
      if (here.is_same(tensor)) return there;
    }
    const at::Tensor result = at::empty_like(tensor, tensor.options().device(protected_device()));
    host_view(result).copy_(tensor);
    return result;
  }

  const c10::OperatorHandle& op_;
  torch::jit::Stack& stack_;
  std::vector<std::pair<at::Tensor, at::Tensor>> given_;  // there, here
};

void on_the_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  TORCH_CHECK(!op.schema().name().starts_with("siamese::"), op.schema().name(), ": has no plain expression");
  const ops::OneThread one_thread;  // autograd calls from a thread of its own, which has other numbers of threads
  HostCall(op, *stack).run();
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&on_the_cpu>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", empty);
  library.impl("empty_strided", empty_strided);
  library.impl("_copy_from", copy_from);
  library.impl("_copy_from_and_resize", copy_from_and_resize);
  library.impl("resize_", resize);
  library.impl("_local_scalar_dense", local_scalar);
  library.impl("as_strided", at::native::as_strided_tensorimpl);
  library.impl("view", at::native::view);
  library.impl("_reshape_alias", at::native::_reshape_alias);
  library.impl("unfold", at::native::unfold);
  // LibTorch would take it apart on a device without a kernel for it.
  library.impl("silu_backward", torch::CppFunction::makeFromBoxedFunction<&on_the_cpu>());
}

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

const bool registered = [] {
  static Hooks hooks;
  at::RegisterPrivateUse1HooksInterface(&hooks);
  c10::SetAllocator(kType, &allocator);
  c10::register_privateuse1_backend("protected");
  // LibTorch makes the attention of such a device of products and a softmax. For comparison the CPU shall do the same.
  at::globalContext().setSDPUseFlash(false);
  return true;
}();

}  // namespace

c10::Device protected_device() { return {kType, 0}; }

int64_t host_reads() { return reads; }

}  // namespace siamese::testing
