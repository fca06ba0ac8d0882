#include "siamese/models/pass_memory.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <c10/core/Allocator.h>

#include "siamese/models/registry.h"
#include "siamese/nn/expect.h"
#include "siamese/ops/head_loss.h"

namespace siamese::models {
namespace {

// Counts what meta tensors would take. It replaces LibTorch's allocator of the meta device for good, since tensors
// refer to the one they came from, and gives what that gives: nothing.
class CountingAllocator : public c10::Allocator {
 public:
  static CountingAllocator& installed() {
    static CountingAllocator* const one = [] {
      auto* const made = new CountingAllocator;  // never deleted: a tensor may outlive any scope
      c10::SetAllocator(c10::DeviceType::Meta, made, /*priority=*/100);
      return made;
    }();
    return *one;
  }

  c10::DataPtr allocate(size_t bytes) override {
    live_ += static_cast<int64_t>(bytes);
    most_ = std::max(most_, live_);
    return {nullptr, new Block{this, static_cast<int64_t>(bytes)}, &release, c10::Device(c10::DeviceType::Meta)};
  }
  void copy_data(void*, const void*, std::size_t) const override {}

  int64_t live() const { return live_; }
  int64_t most() const { return most_; }
  void forget_most() { most_ = live_; }

 private:
  struct Block {
    CountingAllocator* owner;
    int64_t bytes;
  };
  static void release(void* given) {
    const auto* const block = static_cast<Block*>(given);
    block->owner->live_ -= block->bytes;
    delete block;
  }

  int64_t live_ = 0;
  int64_t most_ = 0;
};

Inputs inputs_of(const ModelConfig& config, int64_t rows) {
  const auto whole = at::TensorOptions().dtype(at::kLong).device(at::kMeta);
  const auto real = at::TensorOptions().dtype(at::kFloat).device(at::kMeta);
  Inputs inputs;
  if (config.sees_images()) {
    inputs.images = at::empty({rows, config.channels, config.image, config.image}, real);
    inputs.labels = at::empty({rows}, whole);
    if (config.family == Family::vit) inputs.targets = at::empty({rows, config.classes}, real);
  } else {
    inputs.tokens = at::empty({rows, config.context + 1}, whole);
    inputs.weights = at::empty({rows, config.context}, real);
  }
  return inputs;
}

// The trainer's step adds the gradients of matrices in place (ops/gradient.h); on meta they would come as tensors of
// their own. Without a gradient of theirs the same is kept: an op keeps its input for the input's gradient, too. The
// vocabulary is a matter of matrices alone, since the logits of text exist in chunks only: those are added below.
ModelConfig without_vocabulary(ModelConfig config) {
  if (config.sees_images()) return config;
  config.vocab = 1;
  config.tied = false;
  return config;
}

int64_t logit_bytes(const ModelConfig& config, int64_t rows, ops::Precision precision) {
  if (config.sees_images()) return 0;
  const int64_t element = precision == ops::Precision::bfloat16 ? 2 : 4;
  return ops::head_loss_chunk(rows * config.context, config.vocab, element) * config.vocab * element;
}

}  // namespace

PassMemory pass_memory(const ModelConfig& config, int64_t rows, int64_t recompute_every, ops::Precision precision) {
  nn::expect_that(rows >= 1, "rows", "1 or more", rows);
  CountingAllocator& memory = CountingAllocator::installed();
  const ops::PrecisionGuard as_in_the_run(precision);
  const auto model = make_model(without_vocabulary(config), {}, 0, at::kMeta);
  for (const auto& parameter : model->parameters().list()) {
    if (parameter.kind == nn::ParameterKind::linear) {
      parameter.value.set_requires_grad(false);
    } else {
      parameter.value.mutable_grad() = at::zeros_like(parameter.value);  // as in the trainer's one buffer
    }
  }
  const Inputs inputs = inputs_of(config, rows);
  LossOptions options;
  options.stack.recompute_every = recompute_every;
  options.training = true;
  const int64_t before = memory.live();
  memory.forget_most();
  Losses losses = model->losses(inputs, options);
  PassMemory result;
  result.kept_bytes = memory.live() - before;
  // The logits stand beside all that is kept: they are the last of forward.
  const int64_t with_logits = result.kept_bytes + logit_bytes(config, rows, precision);
  losses.objective.backward();
  result.peak_bytes = std::max(memory.most() - before, with_logits);
  return result;
}

}  // namespace siamese::models
