#include "siamese/eval/classification.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "siamese/eval/inputs.h"
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

void count_row(const float* logits, int64_t classes, int64_t label, Classification& result) {
  const int64_t rank = rank_of(logits, classes, label);
  ++result.count;
  result.top1 += rank == 0 ? 1 : 0;
  result.top5 += rank < 5 ? 1 : 0;
  result.loss += cross_entropy(logits, classes, label);
  if (result.confusion.empty()) return;
  const auto guess = std::max_element(logits, logits + classes) - logits;
  ++result.confusion[static_cast<size_t>(label)][static_cast<size_t>(guess)];
}

}  // namespace

Classification classify(const models::VisionTransformer& model, const data::Batches& source, int64_t rows,
                        int64_t samples, Baseline* baseline) {
  const c10::NoGradGuard no_grad;
  const ops::RoundWeightsOnce rounded;
  if (source.samples() > 0) samples = std::min(samples, source.samples());
  const int64_t classes = model.config().classes;
  Classification result;
  if (classes <= kMostConfused) {
    const auto size = static_cast<size_t>(classes);
    result.confusion.assign(size, std::vector<int64_t>(size, 0));
  }
  for (int64_t first = 0; first < samples; first += rows) {
    const data::Batch batch = source.batch(static_cast<uint64_t>(first), std::min(rows, samples - first));
    if (baseline != nullptr) baseline->add(batch);
    const at::Tensor logits =
        model.logits(model.features(to_inputs(batch).images)).to(at::kCPU, at::kFloat).contiguous();
    for (int64_t row = 0; row < batch.rows; ++row) {
      count_row(logits.const_data_ptr<float>() + row * classes, classes, batch.labels[static_cast<size_t>(row)],
                result);
    }
  }
  result.loss =
      result.count > 0 ? result.loss / static_cast<double>(result.count) : std::numeric_limits<double>::quiet_NaN();
  return result;
}

}  // namespace siamese::eval
