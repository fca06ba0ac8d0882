#include "siamese/data/mixture.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/base/random.h"
#include "siamese/data/bytes_per_token.h"
#include "siamese/data/files.h"

namespace siamese::data {
namespace {

constexpr uint64_t kBlock = 256;  // positions that change places among themselves
constexpr uint64_t kUnit = uint64_t{1} << 32;
constexpr uint64_t kStreamsPerBlock = 16;  // a permutation uses a few streams from its own on

struct Named {
  std::string name, value;
};

Named split_entry(const char* key, const std::string& entry) {
  const size_t at = entry.find('=');
  if (at == std::string::npos || at == 0 || at + 1 == entry.size()) {
    throw UsageError(fmt::format("data.{}: expected NAME={} with data.mix, got '{}'", key,
                                 std::string_view(key) == "mix" ? "WEIGHT" : "PATH", entry));
  }
  return {entry.substr(0, at), entry.substr(at + 1)};
}

double weight_of(const Named& entry) {
  double weight = 0;
  const char* const end = entry.value.data() + entry.value.size();
  const auto read = std::from_chars(entry.value.data(), end, weight);
  if (read.ec != std::errc{} || read.ptr != end || !std::isfinite(weight) || weight < 0) {
    throw UsageError(fmt::format("data.mix: expected a weight >= 0 of '{}', got '{}'", entry.name, entry.value));
  }
  return weight;
}

bool is_plain_name(const std::string& name) {
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  });
}

void add_files(const char* key, const std::vector<std::string>& entries, std::vector<std::string> DataConfig::*list,
               std::vector<MixSource>& sources) {
  for (const std::string& text : entries) {
    const Named entry = split_entry(key, text);
    const auto source =
        std::find_if(sources.begin(), sources.end(), [&](const MixSource& each) { return each.name == entry.name; });
    if (source == sources.end()) {
      throw UsageError(fmt::format("data.{}: '{}' is no source of data.mix", key, entry.name));
    }
    (source->data.*list).push_back(entry.value);
  }
}

class MixedDataset : public Dataset {
 public:
  MixedDataset(std::vector<std::unique_ptr<Dataset>> sources, MixOrder order, std::string title)
      : sources_(std::move(sources)), order_(std::move(order)), title_(std::move(title)) {}

  int64_t vocab() const override { return sources_.front()->vocab(); }
  int64_t samples() const override { return 0; }
  void sample(uint64_t position, std::span<int64_t> tokens, std::span<float> weights) const override {
    const MixOrder::Place place = order_(position);
    sources_[place.source]->sample(place.index, tokens, weights);
  }
  std::optional<std::vector<int64_t>> borders(uint64_t position) const override {
    const MixOrder::Place place = order_(position);
    return sources_[place.source]->borders(place.index);
  }
  std::string describe() const override { return title_; }

 private:
  std::vector<std::unique_ptr<Dataset>> sources_;
  MixOrder order_;
  std::string title_;
};

}  // namespace

std::vector<MixSource> mix_sources(const DataConfig& config) {
  std::vector<MixSource> sources;
  double total = 0;
  for (const std::string& text : config.mix) {
    const Named entry = split_entry("mix", text);
    if (!is_plain_name(entry.name)) {
      throw UsageError(
          fmt::format("data.mix: expected a name of letters, digits, '_', '-' and '.', got '{}'", entry.name));
    }
    for (const MixSource& other : sources) {
      if (other.name == entry.name) throw UsageError(fmt::format("data.mix: '{}' stands there twice", entry.name));
    }
    MixSource& source = sources.emplace_back();
    source.name = entry.name;
    source.weight = weight_of(entry);
    source.data = config;
    source.data.mix = source.data.train = source.data.val = {};
    total += source.weight;
  }
  if (!(total > 0) || !std::isfinite(total)) throw UsageError("data.mix: expected a weight above 0");
  add_files("train", config.train, &DataConfig::train, sources);
  add_files("val", config.val, &DataConfig::val, sources);
  for (const MixSource& source : sources) {
    const bool trained = source.weight > 0;
    if (trained == source.data.train.empty()) {
      throw UsageError(fmt::format("data.train: expected {} files of '{}', whose weight in data.mix is {}",
                                   trained ? "some" : "no", source.name, source.weight));
    }
    if (!trained && source.data.val.empty()) {
      throw UsageError(fmt::format("data.val: expected files of '{}', whose weight in data.mix is 0", source.name));
    }
  }
  return sources;
}

MixOrder::MixOrder(const std::vector<double>& weights, uint64_t seed) : seed_(seed ^ hash_text("data.mix")) {
  double left = std::accumulate(weights.begin(), weights.end(), 0.0);
  SIAMESE_INVARIANT(left > 0);
  const auto last = static_cast<size_t>(
      std::find_if(weights.rbegin(), weights.rend(), [](double weight) { return weight > 0; }).base() -
      weights.begin());
  for (size_t i = 0; i < weights.size(); ++i) {
    const bool takes_the_rest = i + 1 == last;
    const double share = left > 0 ? std::min(1.0, weights[i] / left) : 0;
    shares_.push_back(takes_the_rest ? kUnit : static_cast<uint64_t>(std::llround(share * static_cast<double>(kUnit))));
    left -= weights[i];
  }
}

// Of the positions that are left to it, a source takes number m when floor(share * m) goes up there.
MixOrder::Place MixOrder::operator()(uint64_t position) const {
  const uint64_t block = position / kBlock;
  uint64_t left = block * kBlock + Permutation(kBlock, seed_, block * kStreamsPerBlock)(position % kBlock);
  for (size_t source = 0; source < shares_.size(); ++source) {
    const auto taken = [&](uint64_t count) {
      return shares_[source] * (count / kUnit) + shares_[source] * (count % kUnit) / kUnit;
    };
    const uint64_t before = taken(left);
    if (taken(left + 1) > before) return {source, before};
    left -= before;
  }
  SIAMESE_INVARIANT(false);  // the last source with a weight takes all that is left
  return {};
}

std::unique_ptr<Dataset> mixed_dataset(const DataConfig& config, Split split, int64_t context, int64_t vocab,
                                       uint64_t seed) {
  std::vector<std::unique_ptr<Dataset>> datasets;
  std::vector<double> weights;
  std::string title = "mix";
  const std::vector<MixSource> sources = mix_sources(config);
  const double total = std::accumulate(sources.begin(), sources.end(), 0.0,
                                       [](double sum, const MixSource& source) { return sum + source.weight; });
  for (const MixSource& source : sources) {
    if (source.weight == 0) continue;
    datasets.push_back(open_dataset(source.data, split, context, vocab, seed ^ hash_text(source.name)));
    weights.push_back(source.weight);
    title += fmt::format("{} {:.3g} % {} ({})", weights.size() == 1 ? " of" : ",", 100 * source.weight / total,
                         source.name, datasets.back()->describe());
  }
  return std::make_unique<MixedDataset>(std::move(datasets), MixOrder(weights, seed), title);
}

std::vector<HeldOutSet> open_held_out(const DataConfig& asked, const SampleShape& shape) {
  std::vector<HeldOutSet> sets;
  if (asked.mix.empty()) {
    auto& only = sets.emplace_back();
    only.batches = open_batches(asked, Split::test, shape, 0);
    only.bytes_per_token = bytes_per_token(asked);
    return sets;
  }
  check(asked);
  for (const MixSource& source : mix_sources(located(asked))) {
    auto& set = sets.emplace_back();
    set.name = source.name;
    set.weight = source.weight;
    set.batches = open_batches(source.data, Split::test, shape, 0);
    set.bytes_per_token = bytes_per_token(source.data);
  }
  return sets;
}

}  // namespace siamese::data
