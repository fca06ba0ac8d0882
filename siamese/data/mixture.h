// Named sources of text in given shares: data.mix, with data.train and data.val naming the files of each.
//   mix: [web=3, books=1, wiki=0]    train: [web=web/train, books=books/*.npy]    val: [wiki=wiki/val]
// Sample n comes from the source, and is the sample of it, that a pure function of (weights, seed, n) says: after any n
// samples each source has given its share of them, to one sample for each source before it in the list and the samples
// of one block. A source of weight 0 is only validated on. Each source has its own held-out files, or the tail of its
// own training files, which is a set with a loss of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "siamese/data/batches.h"
#include "siamese/data/config.h"

namespace siamese::data {

struct MixSource {
  std::string name;
  double weight = 0;
  DataConfig data;  // its own files, and no mix
};

// UsageError naming the key: a name twice or unknown, a weight that is none, a source without files.
std::vector<MixSource> mix_sources(const DataConfig& config);

// Which source gives sample n, and the how manieth of its own that is.
class MixOrder {
 public:
  // Weights >= 0, one of them above 0.
  MixOrder(const std::vector<double>& weights, uint64_t seed);

  struct Place {
    size_t source = 0;
    uint64_t index = 0;
  };
  Place operator()(uint64_t position) const;

 private:
  std::vector<uint64_t> shares_;  // of each source, of what those before it left, in units of 2^-32
  uint64_t seed_;
};

// The samples of all sources, in their shares; endless.
std::unique_ptr<Dataset> mixed_dataset(const DataConfig& config, Split split, int64_t context, int64_t vocab,
                                       uint64_t seed);

// A part of the held-out samples that has a loss of its own.
struct HeldOutSet {
  std::string name;            // "" without data.mix: there is one set
  double weight = 1;           // in the loss of them all
  double bytes_per_token = 0;  // of its text; NaN when that is not known (prepared.h)
  std::unique_ptr<Batches> batches;
};

std::vector<HeldOutSet> open_held_out(const DataConfig& config, const SampleShape& shape);

}  // namespace siamese::data
