#include "siamese/train/provenance.h"

#include <iterator>
#include <span>

#include <ATen/Parallel.h>
#include <torch/version.h>

#include "siamese/io/checksum.h"
#include "siamese/kernels/simd.h"

namespace siamese::train {
namespace {

runs::DataKey::Part part_of(const std::vector<data::FileIdentity>& files) {
  runs::DataKey::Part part{.files = std::ssize(files)};
  std::vector<uint64_t> numbers;
  for (const auto& file : files) {
    part.bytes += file.content.bytes;
    numbers.push_back(file.content.bytes);
    numbers.push_back(file.content.hash);
  }
  if (!files.empty()) part.hash = io::checksum(std::as_bytes(std::span(numbers)));
  return part;
}

}  // namespace

runs::Build this_build() {
  runs::Build build = runs::this_source();
  build.libtorch = TORCH_VERSION;
  return build;
}

runs::Stretch begin_stretch(const EngineConfig& engine, int64_t step, int64_t ranks, int64_t asked_by) {
  const std::string now = runs::utc_now();
  return {.build = this_build(),
          .simd = std::string(kernels::simd_level()),
          .precision = std::string(enum_text(engine.precision)),
          .device = engine.device,
          .threads = at::get_num_threads(),
          .ranks = ranks,
          .cpu = cpu_name(),
          .command = runs::command_line(asked_by),
          .started = now,
          .ended = now,
          .from_step = step,
          .to_step = step};
}

runs::DataKey data_key(const data::DataIdentity& identity) { return {part_of(identity.train), part_of(identity.val)}; }

}  // namespace siamese::train
