#include "siamese/eval/analysis.h"

#include <algorithm>
#include <cmath>

#include "siamese/base/check.h"
#include "siamese/data/spread.h"
#include "siamese/eval/changes.h"
#include "siamese/eval/depth_gradients.h"
#include "siamese/eval/look.h"
#include "siamese/eval/stream_use.h"
#include "siamese/ops/operand.h"

namespace siamese::eval {

namespace analysis_detail {

// Samples of one pass: what is kept of it, streams at every place among them, grows with its tokens alone.
constexpr int64_t kTokensOfAPass = 1024;

struct Work {
  const models::Model& model;
  const data::SpreadBatches& samples;
  int64_t rows;  // of one pass
  const AnalysisProgress& progress;

  void tell(const std::string& what, int64_t done, int64_t of) const {
    if (progress) progress(what, done, of);
  }
  // use(batch, first) for the first `count` samples, pass by pass.
  template <class Use>
  void each(int64_t count, const Use& use) const {
    for (int64_t first = 0; first < count; first += rows) {
      use(GivenBatch(model, samples.batch(static_cast<uint64_t>(first), std::min(rows, count - first))), first);
    }
  }
};

void look(const Work& work, const AnalysisOptions& options, Analysis& analysis) {
  runs::AnalysisRecord& record = analysis.record;
  Look look(work.model);
  work.each(record.samples, [&](const GivenBatch& batch, int64_t first) {
    work.tell("streams and lenses", first, record.samples);
    const int64_t rows = batch.given.tokens.defined() ? batch.given.tokens.size(0) : batch.given.images.size(0);
    const int64_t share = std::max<int64_t>(1, options.lens_tokens * rows / record.samples);
    record.lens_tokens += batch.is_text() ? std::min(share, batch.counted.size(0)) : rows;
    look.add(batch, share, first);
  });
  record.loss = look.loss();
  if (!std::isfinite(record.loss)) {
    throw DivergedError("the held-out loss is not finite: there is nothing to look at in such a model");
  }
  work.tell("similarity", 0, 1);
  look.fill(record);
  for (models::NamedTensor& tensor : look.tensors()) analysis.tensors.push_back(std::move(tensor));
}

void measure_gradients(const Work& work, runs::AnalysisRecord& record) {
  double weight = 0;
  work.each(record.changed_samples, [&](const GivenBatch& batch, int64_t) { weight += batch.weight; });
  DepthGradients gradients(work.model, weight);
  work.each(record.changed_samples, [&](const GivenBatch& batch, int64_t first) {
    work.tell("gradients", first, record.changed_samples);
    gradients.add(batch);
  });
  gradients.fill(record);
}

void measure_use(const Work& work, Analysis& analysis) {
  StreamUse use(work.model);
  const int64_t count = analysis.record.changed_samples;
  work.each(count, [&](const GivenBatch& batch, int64_t first) {
    work.tell("use of streams", first, count);
    use.add(batch);
  });
  use.fill(analysis.record);
  for (models::NamedTensor& tensor : use.tensors()) analysis.tensors.push_back(std::move(tensor));
}

// Of the few channels with the largest values: levelled where that value is.
std::vector<Change> channels_levelled(const std::vector<runs::PeakAnalysis>& peaks) {
  constexpr size_t kMostChannels = 4;
  std::vector<Change> changes;
  for (const runs::PeakAnalysis& peak : peaks) {
    if (changes.size() == 2 * kMostChannels) break;
    const bool known = std::any_of(changes.begin(), changes.end(), [&](const Change& change) {
      return change.stream == peak.stream && change.channel == peak.channel;
    });
    if (known) continue;
    for (const Change::Kind kind : {Change::Kind::channel_mean, Change::Kind::channel_zero}) {
      changes.push_back(
          {.kind = kind, .first = static_cast<size_t>(peak.place), .stream = peak.stream, .channel = peak.channel});
    }
  }
  return changes;
}

void place_loss(const Change& change, double loss, runs::AnalysisRecord& record) {
  if (change.kind == Change::Kind::channel_mean || change.kind == Change::Kind::channel_zero) {
    const auto peak = std::find_if(record.peaks.begin(), record.peaks.end(), [&](const runs::PeakAnalysis& one) {
      return one.stream == change.stream && one.channel == change.channel;
    });
    (change.kind == Change::Kind::channel_mean ? peak->loss_mean : peak->loss_zero) = loss;
    return;
  }
  runs::PlaceAnalysis& place = record.places[change.first];
  for (runs::StreamAnalysis& stream : place.streams) {
    if (stream.name != change.stream) continue;
    (change.kind == Change::Kind::zero ? stream.loss_zeroed : stream.loss_frozen) = loss;
  }
}

void measure_changes(const Work& work, const AnalysisOptions& options, runs::AnalysisRecord& record) {
  std::vector<Change> changes = sublayers_left_out(record.blocks);
  const size_t sublayers = changes.size();
  for (const Change& change : ranges_left_out(record.blocks, options.all_ranges)) changes.push_back(change);
  const size_t left_out = changes.size();
  const GivenBatch first(work.model, work.samples.batch(0, 1));
  for (const Change& change : streams_cut(work.model, first, options.all_sites)) changes.push_back(change);
  for (const Change& change : channels_levelled(record.peaks)) changes.push_back(change);
  ChangedLosses losses(work.model, changes);
  const int64_t passes = (record.changed_samples + work.rows - 1) / work.rows;
  const int64_t all = passes * static_cast<int64_t>(changes.size());
  int64_t done = 0;
  work.each(record.changed_samples, [&](const GivenBatch& batch, int64_t) {
    losses.add(batch, [&] { work.tell("changed passes", ++done, all); });
  });
  record.changed_loss = losses.unchanged();
  for (size_t i = 0; i < changes.size(); ++i) {
    const Change& change = changes[i];
    if (i < sublayers) {
      record.places[change.first].branch->loss_without = losses.loss(i);
    } else if (i < left_out) {
      record.ranges.push_back({static_cast<int64_t>(change.first / 2),
                               static_cast<int64_t>((change.last - change.first) / 2), losses.loss(i)});
    } else {
      place_loss(change, losses.loss(i), record);
    }
  }
}

}  // namespace analysis_detail

void name_tokens(runs::AnalysisRecord& record, const Words& words) {
  if (!words.is_text()) return;
  for (runs::PeakAnalysis& peak : record.peaks) {
    if (peak.token >= 0) peak.text = words.token_text(peak.token);
  }
}

Analysis analyze(const models::Model& model, const models::ModelConfig& config, const data::Batches& held_out,
                 const AnalysisOptions& options, const AnalysisProgress& progress) {
  const ops::RoundWeightsOnce rounded;
  const data::SpreadBatches samples(held_out, options.samples);
  const int64_t rows = std::max<int64_t>(1, analysis_detail::kTokensOfAPass / config.context);
  const analysis_detail::Work work{model, samples, rows, progress};
  Analysis analysis;
  runs::AnalysisRecord& record = analysis.record;
  record.family = enum_text(config.family);
  record.scheme = config.residual;
  record.parameters = model.parameters().count();
  record.width = config.width;
  record.blocks = config.blocks;
  record.data = held_out.describe();
  record.samples = samples.samples();
  record.tokens = config.context;
  record.changed_samples = std::min(options.changed_samples, record.samples);
  analysis_detail::look(work, options, analysis);
  analysis_detail::measure_gradients(work, record);
  analysis_detail::measure_use(work, analysis);
  analysis_detail::measure_changes(work, options, record);
  return analysis;
}

}  // namespace siamese::eval
