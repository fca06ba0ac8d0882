#include "siamese/train/record_facts.h"

#include <cmath>

#include "siamese/base/check.h"
#include "siamese/eval/evaluate.h"
#include "siamese/models/registry.h"

namespace siamese::train {
namespace {

double baseline_of(const RunConfig& config) {
  try {
    const auto all = data::open_batches(config.data, data::Split::test, sample_shape(config.model), 0);
    const eval::HeldOutSamples asked(*all, config.eval, config.train.batch);
    return eval::baseline_loss(config.model, asked.from(), config.train.micro_batch, asked.count());
  } catch (const Error&) {
    return runs::kNone;
  }
}

}  // namespace

double step_flops(const models::Model& model, const RunConfig& config) {
  constexpr double kForwardAndBackward = 3;  // a backward pass has two products for each of the forward pass
  return kForwardAndBackward * model.forward_flops(config.train.batch);
}

void fill_in_facts(const RunConfig& config, runs::RecordLine& line) {
  runs::RunSummary& summary = line.summary;
  if (summary.eval_step > 0 && std::isnan(summary.baseline)) summary.baseline = baseline_of(config);
  if (std::isnan(summary.step_flops)) {
    summary.step_flops = step_flops(*models::make_model(config.model, config.init, 0, at::kMeta), config);
  }
}

}  // namespace siamese::train
