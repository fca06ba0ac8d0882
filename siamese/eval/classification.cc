#include "siamese/eval/classification.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "siamese/eval/inputs.h"
#include "siamese/eval/passes.h"
#include "siamese/ops/operand.h"

namespace siamese::eval {
namespace {

// How many classes a row of logits puts before `label`.
int64_t rank_of(const float* logits, int64_t classes, int64_t label) {
  int64_t before = 0;
  for (int64_t other = 0; other < classes; ++other) {
    if (logits[other] > logits[label] || (logits[other] == logits[label] && other < label)) ++before;
  }
  return before;
}

double cross_entropy(const float* logits, int64_t classes, int64_t label) {
  const double largest = *std::max_element(logits, logits + classes);
  double sum = 0;
  for (int64_t i = 0; i < classes; ++i) sum += std::exp(static_cast<double>(logits[i]) - largest);
  return largest + std::log(sum) - static_cast<double>(logits[label]);
}

// What counts of an image: its label, the first guess, how many come before the label, the loss.
constexpr size_t kPerImage = 4;
void append_image(const float* logits, int64_t classes, int64_t label, std::vector<double>& row) {
  const auto guess = std::max_element(logits, logits + classes) - logits;
  row.insert(row.end(), {static_cast<double>(label), static_cast<double>(guess),
                         static_cast<double>(rank_of(logits, classes, label)), cross_entropy(logits, classes, label)});
}

void count_image(std::span<const double> image, Classification& result) {
  ++result.count;
  result.top1 += image[2] == 0 ? 1 : 0;
  result.top5 += image[2] < 5 ? 1 : 0;
  result.loss += image[3];
  if (!result.confusion.empty()) ++result.confusion[static_cast<size_t>(image[0])][static_cast<size_t>(image[1])];
}

}  // namespace

Classification classify(const models::VisionTransformer& model, const data::Batches& source, int64_t rows,
                        int64_t samples, Baseline* baseline, comm::Group* group) {
  const c10::NoGradGuard no_grad;
  const ops::RoundWeightsOnce rounded;
  if (source.samples() > 0) samples = std::min(samples, source.samples());
  const int64_t classes = model.config().classes;
  Classification result;
  if (classes <= kMostConfused) {
    const auto size = static_cast<size_t>(classes);
    result.confusion.assign(size, std::vector<int64_t>(size, 0));
  }
  Passes passes(group);
  for (int64_t first = 0; first < samples; first += rows) {
    const data::Batch batch = source.batch(static_cast<uint64_t>(first), std::min(rows, samples - first));
    if (baseline != nullptr) baseline->add(batch);
    if (!passes.next_is_mine()) continue;
    const at::Tensor logits =
        model.logits(model.features(to_inputs(batch).images)).to(at::kCPU, at::kFloat).contiguous();
    std::vector<double> images;
    for (int64_t row = 0; row < batch.rows; ++row) {
      append_image(logits.const_data_ptr<float>() + row * classes, classes, batch.labels[static_cast<size_t>(row)],
                   images);
    }
    passes.set(std::move(images));
  }
  int64_t left = samples;
  for (const std::vector<double>& images : passes.all()) {
    for (size_t i = 0; i + kPerImage <= images.size() && left > 0; i += kPerImage, --left) {
      count_image(std::span(images).subspan(i, kPerImage), result);
    }
  }
  result.loss =
      result.count > 0 ? result.loss / static_cast<double>(result.count) : std::numeric_limits<double>::quiet_NaN();
  return result;
}

}  // namespace siamese::eval
