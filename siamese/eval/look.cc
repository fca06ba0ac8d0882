#include "siamese/eval/look.h"

#include <algorithm>
#include <cmath>
#include <span>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

namespace siamese::eval {

Look::Look(const models::Model& model)
    : model_(model),
      places_(model.stack().sites().size() + 1),
      sinks_(model.stack().sites().size() / 2),
      rows_(places_.size()) {}

void Look::add(const GivenBatch& batch, int64_t most_lens, int64_t first_sample) {
  const c10::NoGradGuard no_grad;
  batch_ = &batch;
  first_sample_ = first_sample;
  most_rows_ = most_lens;
  if (batch.is_text()) read_rows_ = thinned(batch.counted, most_lens);
  before_ = {};
  waiting_.assign(places_.size(), {});
  const models::Losses losses =
      model_.losses(batch.inputs, {.stack = {.recorder = this, .intervention = this, .watch = this}});
  loss_ += losses.loss.item<double>();
  if (losses.expert_counts.defined()) {
    const at::Tensor counts = losses.expert_counts.to(at::kCPU, at::kDouble);
    expert_counts_ = expert_counts_.defined() ? expert_counts_ + counts : counts;
  }
  weight_ += batch.weight;
  samples_ += static_cast<double>(before_[0].size(0));
  read_out();
  waiting_.clear();
  before_ = {};
  batch_ = nullptr;
}

residual::Streams Look::between(size_t next, residual::Streams streams) {
  const residual::Streams now = residual::flush(streams);
  OfPlace& place = places_[next];
  see(place, now);
  for (const residual::Stream& stream : now.list) {
    see_peaks(next, stream);
    for (const residual::Stream& earlier : before_.list) {
      if (earlier.name == stream.name) places_[next - 1].streams[stream.name].next.add(earlier.value, stream.value);
    }
  }
  wait_for_output(next, now);
  before_ = now;
  return streams;
}

void Look::branch(const residual::Site& site, const at::Tensor& input, const at::Tensor& output) {
  OfPlace& place = places_[static_cast<size_t>(site.index)];
  place.input.add(input);
  place.output.add(output);
  if (before_.list.size() > kMostStreamsApart) return;
  // The streams as `between` has just seen them, with what the branch is about to add to them.
  for (const residual::Stream& stream : before_.list) place.streams[stream.name].branch.add(stream.value, output);
}

// Of the streams as this site is about to read them, which `between` has just seen.
void Look::attention(const residual::Site& site, const models::WatchedAttention& watched) {
  at::Tensor sizes;
  for (const residual::Stream& stream : before_.list) {
    const at::Tensor of_stream = stream.value.detach().abs().amax(-1);
    sizes = sizes.defined() ? at::maximum(sizes, of_stream) : of_stream;
  }
  sinks_[static_cast<size_t>(site.block)].add(watched, sizes);
}

void Look::see(OfPlace& place, const residual::Streams& streams) {
  place.names.clear();
  for (const auto& [name, value] : streams.list) {
    place.names.push_back(name);
    OfStream& of = place.streams[name];
    of.values.add(value);
    of.token_mean.add(value);
    see_norms(of, value);
  }
  if (streams.list.size() > kMostStreamsApart) return;
  for (size_t i = 0; i < streams.list.size(); ++i) {
    for (size_t j = i + 1; j < streams.list.size(); ++j) {
      place.pairs[{streams.list[i].name, streams.list[j].name}].add(streams[i], streams[j]);
    }
  }
}

void Look::see_norms(OfStream& of, const at::Tensor& values) {
  const int64_t tokens = values.size(1);
  const at::Tensor norms = values.detach().norm(2, -1).to(at::kCPU, at::kDouble).contiguous();  // [samples, tokens]
  of.position_norms.resize(static_cast<size_t>(tokens));
  const double* const data = norms.const_data_ptr<double>();
  for (int64_t i = 0; i < norms.numel(); ++i) of.position_norms[static_cast<size_t>(i % tokens)] += data[i];
}

void Look::see_peaks(size_t place, const residual::Stream& stream) {
  const at::Tensor flat = float_rows(stream.value).reshape({-1}), sizes = flat.abs();
  if (peaks_.size() == kMostPeaks && sizes.max().item<double>() <= std::abs(peaks_.back().value)) return;
  for (const residual::Stream& earlier : before_.list) {  // only carried on: its values were counted where it began
    if (at::equal(earlier.value, stream.value)) return;
  }
  const int64_t tokens = stream.value.size(1), width = stream.value.size(2);
  // All of them may lie in one stream of one pass.
  const at::Tensor largest =
      std::get<1>(at::topk(sizes, std::min(static_cast<int64_t>(kMostPeaks), flat.numel()))).contiguous();
  const std::span<const int64_t> indices(largest.const_data_ptr<int64_t>(), static_cast<size_t>(largest.numel()));
  const float* const values = flat.const_data_ptr<float>();
  for (const int64_t index : indices) {
    const int64_t row = index / width;
    runs::PeakAnalysis peak{.place = static_cast<int64_t>(place),
                            .stream = stream.name,
                            .value = values[index],
                            .sample = first_sample_ + row / tokens,
                            .position = row % tokens,
                            .channel = index % width};
    if (batch_->is_text()) peak.token = batch_->given.tokens[row / tokens][row % tokens].item<int64_t>();
    peaks_.push_back(std::move(peak));
  }
  std::stable_sort(peaks_.begin(), peaks_.end(),
                   [](const auto& a, const auto& b) { return std::abs(a.value) > std::abs(b.value); });
  if (peaks_.size() > kMostPeaks) peaks_.resize(kMostPeaks);
}

void Look::wait_for_output(size_t place, const residual::Streams& streams) {
  const residual::Topology& topology = model_.stack().topology();
  Waiting& waiting = waiting_[place];
  const auto take = [&](const std::string& name, const at::Tensor& state) {
    if (!state.defined()) return;
    waiting.names.push_back(name);
    waiting.states.push_back(batch_->is_text() ? state.flatten(0, 1).index_select(0, read_rows_.to(state.device()))
                                               : state);
  };
  if (streams.list.size() <= kMostStreamsApart) {
    for (size_t i = 0; i < streams.list.size(); ++i) take(streams.list[i].name, topology.lens(streams, i));
  }
  take("", topology.lens(streams));
  const at::Tensor rows = float_rows(waiting.states.back());
  const at::Tensor some = thinned(at::arange(rows.size(0), at::kLong), most_rows_);
  rows_.add(place, rows.index_select(0, some));
}

void Look::read_out() {
  const GivenBatch& batch = *batch_;
  const at::Tensor& last = waiting_.back().states.back();  // of all streams at the close: what the model itself reads
  if (last.size(0) == 0) return;                           // no token of these samples counts
  const at::Tensor whole = model_.read_out(last, batch.given);
  const bool noise = batch.given.timesteps.defined();
  const at::Tensor answers =
      (batch.is_text() ? batch.answers.reshape({-1}).index_select(0, read_rows_) : batch.answers).to(whole.device());
  const std::optional<Choices> choices = noise ? std::nullopt : std::optional<Choices>(whole);
  for (size_t place = 0; place < places_.size(); ++place) {
    const Waiting& waiting = waiting_[place];
    for (size_t i = 0; i < waiting.names.size(); ++i) {
      const std::string& name = waiting.names[i];
      LensSums& sums = name.empty() ? places_[place].lens : places_[place].streams[name].lens;
      const at::Tensor seen = model_.read_out(waiting.states[i], batch.given);
      if (noise) {
        sums.add_noise(seen, whole, answers);
      } else {
        sums.add_choices(seen, *choices, answers);
      }
    }
  }
}

void Look::fill(runs::AnalysisRecord& record) const {
  const std::vector<residual::Site>& sites = model_.stack().sites();
  for (size_t i = 0; i < places_.size(); ++i) {
    const OfPlace& seen = places_[i];
    const Spectrum spectrum = rows_.spectrum(i);
    runs::PlaceAnalysis& place = record.places.emplace_back();
    place.index = static_cast<int64_t>(i);
    place.block = i < sites.size() ? sites[i].block : record.blocks;
    place.kind = i < sites.size() ? std::string(enum_text(sites[i].kind)) : "close";
    place.lens = seen.lens.record();
    place.rank = spectrum.rank;
    place.entropy = spectrum.entropy;
    for (const std::string& name : seen.names) {
      const OfStream& of = seen.streams.at(name);
      runs::StreamAnalysis& stream = place.streams.emplace_back();
      stream.name = name;
      stream.values = of.values.statistics();
      stream.token_mean = of.token_mean.mean();
      stream.next_cosine = of.next.mean();
      stream.branch_cosine = of.branch.mean();
      stream.lens = of.lens.record();
    }
    for (const auto& [names, sums] : seen.pairs) place.pairs.push_back({names.first, names.second, sums.mean()});
    if (i == sites.size()) continue;
    runs::BranchAnalysis& branch = place.branch.emplace();
    branch.input = seen.input.statistics();
    branch.output = seen.output.statistics();
    if (const SinkSums& sinks = sinks_[static_cast<size_t>(sites[i].block)];
        sites[i].kind == residual::SiteKind::attention && !sinks.empty()) {
      branch.sink_first = sinks.mean_first();
      branch.sink_largest = sinks.mean_largest();
      branch.sink_rate = sinks.sink_rate();
    }
    if (!expert_counts_.defined() || sites[i].kind != residual::SiteKind::ffn) continue;
    const at::Tensor load = expert_counts_[sites[i].block] / expert_counts_[sites[i].block].sum();
    const auto experts = static_cast<double>(load.size(0));
    branch.largest_load = load.max().item<double>() * experts;
    branch.routing_entropy = -at::xlogy(load, load).sum().item<double>() / std::log(experts);
  }
  record.peaks = peaks_;
  record.effective_depth = effective_depth(record.places);
}

std::vector<models::NamedTensor> Look::tensors() const {
  std::map<std::string, at::Tensor> norms;
  for (size_t place = 0; place < places_.size(); ++place) {
    for (const auto& [name, of] : places_[place].streams) {
      const auto tokens = static_cast<int64_t>(of.position_norms.size());
      at::Tensor& all = norms[name];
      if (!all.defined()) {
        all = at::full({static_cast<int64_t>(places_.size()), tokens}, runs::kNone, at::kFloat);
      }
      for (int64_t i = 0; i < tokens; ++i) {
        all[static_cast<int64_t>(place)][i] = of.position_norms[static_cast<size_t>(i)] / samples_;
      }
    }
  }
  std::vector<models::NamedTensor> tensors;
  for (const auto& [name, all] : norms) tensors.push_back({"stream/" + name + "/norm", all});
  tensors.push_back({"similarity/cosine", rows_.cosines()});
  tensors.push_back({"similarity/cka", rows_.cka()});
  for (models::NamedTensor& tensor : sink_tensors()) tensors.push_back(std::move(tensor));
  return tensors;
}

std::vector<models::NamedTensor> Look::sink_tensors() const {
  const auto blocks = static_cast<int64_t>(sinks_.size());
  if (blocks == 0 || sinks_[0].empty()) return {};
  const int64_t heads = sinks_[0].heads();
  at::Tensor first = at::empty({blocks, heads, kFirstPositions}), largest = at::empty({blocks, heads});
  for (int64_t block = 0; block < blocks; ++block) {
    const SinkSums& sums = sinks_[static_cast<size_t>(block)];
    for (int64_t head = 0; head < heads; ++head) {
      for (int64_t p = 0; p < kFirstPositions; ++p) first[block][head][p] = sums.first(head, p);
      largest[block][head] = sums.largest(head);
    }
  }
  return {{"attention/first", first}, {"attention/largest", largest}};
}

}  // namespace siamese::eval
