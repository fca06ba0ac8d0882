#include "siamese/cli/version.h"

#include <cstdio>

#include <fmt/format.h>

#include "siamese/kernels/simd.h"
#include "siamese/train/provenance.h"

namespace siamese::cli {

std::string version_text() {
  return fmt::format("{}, {} kernels, bfloat16 {}, {} threads", train::this_build().text(), kernels::simd_level(),
                     fast_bfloat16(), train::core_count());
}

void warn_of_slow_precision(const train::EngineConfig& engine) {
  const std::string note = train::precision_note(engine);
  if (!note.empty()) std::fprintf(stderr, "%s\n", note.c_str());
}

std::string fast_bfloat16() {
  if (!kernels::has_bfloat16_products()) return "none";
  return kernels::has_amx() ? "AVX512-BF16 and AMX" : "AVX512-BF16";
}

}  // namespace siamese::cli
