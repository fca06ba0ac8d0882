// Images drawn from a diffusion model, and how they compare with held-out ones in the eyes of a classifier that was
// trained by this project: the Frechet distance between the features of both sets (feature distance), and how often
// the classifier sees the class that was asked for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include <ATen/core/Tensor.h>

#include "siamese/data/batches.h"
#include "siamese/eval/diffusion_sampler.h"
#include "siamese/io/image.h"
#include "siamese/models/dit.h"
#include "siamese/models/vit.h"

namespace siamese::eval {

// `count` images [count, channels, image, image] on the host, `rows` at a time; image i has class labels[i %
// labels.size()]. Image i is the same, up to rounding, whatever the others are. `drawn` hears how many there are so
// far.
at::Tensor draw_samples(const models::DiffusionTransformer& model, const std::vector<int64_t>& labels, int64_t count,
                        int64_t rows, const SamplerOptions& options,
                        const std::function<void(int64_t drawn)>& drawn = {});

// 0, 1, ... classes - 1.
std::vector<int64_t> all_classes(int64_t classes);

struct SampleQuality {
  double feature_distance = 0;
  double class_agreement = 0;  // share
};

// Against the first `reference` held-out images.
SampleQuality judge_samples(const models::VisionTransformer& classifier, const at::Tensor& images,
                            const std::vector<int64_t>& labels, const data::Batches& held_out, int64_t rows,
                            int64_t reference);

// [n, channels, height, width] of values from -1 to 1 as bytes [n, height, width, channels], rounded.
at::Tensor image_bytes(const at::Tensor& images);
// The same with three channels, grey ones three times, in a file for scripts that compute FID (io/npz.h). UsageError
// unless they have one or three.
void write_image_npz(const std::filesystem::path& path, const at::Tensor& images);

// Images in rows of a near square, values from -1 to 1 as 0 to 255. UsageError unless they have one or three channels.
io::Image image_grid(const at::Tensor& images);

}  // namespace siamese::eval
