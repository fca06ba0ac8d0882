#include "siamese/eval/samples.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "siamese/base/check.h"
#include "siamese/eval/feature_distance.h"
#include "siamese/eval/inputs.h"
#include "siamese/io/npz.h"
#include "siamese/ops/operand.h"

namespace siamese::eval {
namespace {

constexpr int64_t kGap = 2;         // pixels between the pictures of a grid
constexpr uint8_t kGapGrey = 0xff;  // and their brightness

at::Tensor features_of(const models::VisionTransformer& classifier, const at::Tensor& images, int64_t rows) {
  std::vector<at::Tensor> parts;
  for (const auto& part : images.split(rows)) parts.push_back(classifier.features(part));
  return at::cat(parts);
}

void check_channels(const at::Tensor& images) {
  if (images.size(1) == 1 || images.size(1) == 3) return;
  throw UsageError("a picture needs images of 1 or 3 channels, got " + std::to_string(images.size(1)) +
                   " (latents? save them as tensors instead)");
}

}  // namespace

std::vector<int64_t> all_classes(int64_t classes) {
  std::vector<int64_t> labels(static_cast<size_t>(classes));
  std::iota(labels.begin(), labels.end(), 0);
  return labels;
}

at::Tensor draw_samples(const models::DiffusionTransformer& model, const std::vector<int64_t>& labels, int64_t count,
                        int64_t rows, const SamplerOptions& options, const std::function<void(int64_t)>& drawn) {
  const c10::NoGradGuard no_grad;
  const models::ModelConfig& config = model.config();
  const Denoiser denoiser = [&model](const at::Tensor& x, const at::Tensor& timesteps, const at::Tensor& of) {
    return model.output(x, timesteps, of);
  };
  const at::Device device = model.parameters().options().device();
  std::vector<at::Tensor> parts;
  for (int64_t first = 0; first < count; first += rows) {
    const int64_t here = std::min(rows, count - first);
    at::Tensor asked = at::empty({here}, at::kLong);
    for (int64_t row = 0; row < here; ++row) {
      asked.mutable_data_ptr<int64_t>()[row] = labels[static_cast<size_t>(first + row) % labels.size()];
    }
    parts.push_back(sample(model.diffusion(), denoiser, {here, config.channels, config.image, config.image},
                           asked.to(device), model.null_label(), config.learn_sigma, options, first)
                        .to(at::kCPU));
    if (drawn) drawn(first + here);
  }
  return at::cat(parts);
}

SampleQuality judge_samples(const models::VisionTransformer& classifier, const at::Tensor& images,
                            const std::vector<int64_t>& labels, const data::Batches& held_out, int64_t rows,
                            int64_t reference) {
  const c10::NoGradGuard no_grad;
  const ops::PrecisionGuard in_float32(ops::Precision::float32);  // a ruler does not change with what it measures
  if (held_out.samples() > 0) reference = std::min(reference, held_out.samples());
  std::vector<at::Tensor> real;
  for (int64_t first = 0; first < reference; first += rows) {
    const data::Batch batch = held_out.batch(static_cast<uint64_t>(first), std::min(rows, reference - first));
    real.push_back(classifier.features(to_inputs(batch).images));
  }
  const at::Tensor drawn = features_of(classifier, images, rows);
  if (!at::isfinite(drawn).all().item<bool>()) {  // as a loss that is not finite: a result, not the end of a run
    return {std::numeric_limits<double>::quiet_NaN(), 0};
  }
  const at::Tensor guesses = classifier.logits(drawn).argmax(-1).to(at::kCPU);
  int64_t agreed = 0;
  for (int64_t i = 0; i < guesses.size(0); ++i) {
    if (guesses[i].item<int64_t>() == labels[static_cast<size_t>(i) % labels.size()]) ++agreed;
  }
  return {feature_distance(drawn, at::cat(real)).frechet,
          static_cast<double>(agreed) / static_cast<double>(guesses.size(0))};
}

at::Tensor image_bytes(const at::Tensor& images) {
  return ((images.to(at::kFloat).clamp(-1, 1) + 1) * 127.5).round().to(at::kByte).permute({0, 2, 3, 1}).contiguous();
}

void write_image_npz(const std::filesystem::path& path, const at::Tensor& images) {
  check_channels(images);
  at::Tensor bytes = image_bytes(images);
  if (bytes.size(3) == 1) bytes = bytes.expand({-1, -1, -1, 3}).contiguous();
  io::write_npz(path, "arr_0", bytes.sizes().vec(),
                {bytes.const_data_ptr<uint8_t>(), static_cast<size_t>(bytes.numel())});
}

io::Image image_grid(const at::Tensor& images) {
  const int64_t count = images.size(0), channels = images.size(1), height = images.size(2), width = images.size(3);
  check_channels(images);
  const auto columns = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  const int64_t rows = (count + columns - 1) / columns;
  io::Image grid;
  grid.width = static_cast<int>(columns * (width + kGap) - kGap);
  grid.height = static_cast<int>(rows * (height + kGap) - kGap);
  grid.channels = static_cast<int>(channels);
  grid.pixels.assign(static_cast<size_t>(grid.width) * static_cast<size_t>(grid.height * channels), kGapGrey);
  const at::Tensor bytes = image_bytes(images);
  const auto pixel = bytes.accessor<uint8_t, 4>();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t top = i / columns * (height + kGap), left = i % columns * (width + kGap);
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        for (int64_t c = 0; c < channels; ++c) {
          grid.pixels[static_cast<size_t>(((top + y) * grid.width + left + x) * channels + c)] = pixel[i][y][x][c];
        }
      }
    }
  }
  return grid;
}

}  // namespace siamese::eval
