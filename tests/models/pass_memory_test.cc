// The bytes that a pass is said to hold, beside those that LibTorch's CPU allocator hands out in one.
#include "siamese/models/pass_memory.h"

#include "tests/models/small_families.h"
#include "tests/support/schemes.h"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include "siamese/base/check.h"
#include "siamese/ops/gradient.h"

namespace siamese::models {
namespace {

// What the CPU allocator says of each tensor that comes or goes while it stands.
class Watch : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, int64_t bytes, size_t, size_t, c10::Device) override {
    live += bytes;
    most = std::max(most, live);
  }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t live = 0;
  int64_t most = 0;
};

// As the trainer does it: gradients of matrices are added in place.
PassMemory measured(const ModelConfig& config, int64_t rows, int64_t recompute_every, ops::Precision precision) {
  const ops::PrecisionGuard as_in_the_run(precision);
  const auto model = make_small(config);
  const nn::GradientBuffer gradients(model->parameters());
  gradients.zero();
  const Inputs inputs = family_inputs(config, rows, 3);
  LossOptions options = family_options(config, rows);
  options.stack.recompute_every = recompute_every;
  const ops::GradientsInPlace in_place;
  const ops::RoundWeightsOnce once;
  if (precision == ops::Precision::bfloat16) {  // rounded weights are no activations: they are there after one pass
    model->losses(inputs, options).objective.backward();
  }
  const auto watch = std::make_shared<Watch>();
  const c10::DebugInfoGuard watching(c10::DebugInfoKind::PROFILER_STATE, watch);
  Losses losses = model->losses(inputs, options);
  const int64_t kept = watch->live;
  losses.objective.backward();
  return {kept, watch->most};
}

void expect_near(int64_t said, int64_t real, const char* what) {
  const auto bytes = static_cast<double>(real);
  EXPECT_NEAR(static_cast<double>(said), bytes, 0.1 * bytes) << what;
}

// Large enough that the few numbers of a loss or a sum do not matter, small enough for milliseconds.
ModelConfig larger(ModelConfig config) {
  config.width = 64;
  config.ffn_width = 96;
  config.heads = 4;
  config.shared_width = 0;
  config.vocab = 40;
  if (config.sees_images()) {
    config.image = 16;
  } else {
    config.context = 64;
  }
  config.blocks = 4;
  resolve(config, {});
  return config;
}

TEST(PassMemory, IsWhatTheAllocatorHandsOut) {
  for (const Family family : all_families()) {
    for (const std::string& scheme : schemes_of(family)) {
      for (const int64_t recompute : {0, 1}) {
        SCOPED_TRACE(case_name(family, scheme) + " " + std::to_string(recompute));
        const ModelConfig config = larger(small_family(family, scheme));
        const PassMemory said = pass_memory(config, 8, recompute, ops::Precision::float32);
        const PassMemory real = measured(config, 8, recompute, ops::Precision::float32);
        expect_near(said.kept_bytes, real.kept_bytes, "kept");
        expect_near(said.peak_bytes, real.peak_bytes, "peak");
      }
    }
  }
}

// On a CPU that does not multiply bfloat16, products hold rounded copies beside: only what is kept can be compared.
TEST(PassMemory, InBfloat16) {
  for (const Family family : all_families()) {
    for (const std::string scheme : {"pre", "siamese", "hc"}) {
      SCOPED_TRACE(case_name(family, scheme));
      const ModelConfig config = larger(small_family(family, scheme));
      const int64_t said = pass_memory(config, 8, 0, ops::Precision::bfloat16).kept_bytes;
      expect_near(said, measured(config, 8, 0, ops::Precision::bfloat16).kept_bytes, "kept");
      EXPECT_LT(said, pass_memory(config, 8, 0, ops::Precision::float32).kept_bytes);
    }
  }
}

TEST(PassMemory, CountsTheLogitsOfText) {
  ModelConfig config = larger(small_family(Family::lm, "pre"));
  const int64_t small = pass_memory(config, 1, 1, ops::Precision::float32).peak_bytes;
  config.vocab = 100'000;
  resolve(config, {});
  const PassMemory large = pass_memory(config, 1, 1, ops::Precision::float32);
  EXPECT_GE(large.peak_bytes, large.kept_bytes + int64_t{64} * 100'000 * 4) << "one chunk: 64 tokens";
  EXPECT_GT(large.peak_bytes, 10 * small);
}

TEST(PassMemory, NeedsRows) { EXPECT_THROW(pass_memory(small_family(Family::lm, "pre"), 0, 0, {}), UsageError); }

}  // namespace
}  // namespace siamese::models
