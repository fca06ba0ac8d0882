// Batches by position: all that training, prefetching and evaluation know of any data. A batch is a pure function of
// (data, seed, first position, rows), so a run that has consumed n samples goes on with position n.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "siamese/data/dataset.h"

namespace siamese::data {

// What a model takes. Text: `image` is 0. Images: `context` is 0.
struct SampleShape {
  int64_t context = 0;
  int64_t vocab = 0;
  int64_t image = 0;  // rows and columns
  int64_t channels = 0;
  int64_t classes = 0;

  bool is_image() const { return image > 0; }
  int64_t pixels() const { return channels * image * image; }
};

struct Batch {
  int64_t rows = 0;
  SampleShape shape;
  uint64_t first_position = 0;  // row r is sample first_position + r
  // Text.
  std::vector<int64_t> tokens;  // [rows, context + 1]
  std::vector<float> weights;   // [rows, context]
  // Of each row, before which tokens another document begins (data.pack); empty: documents do not matter.
  std::vector<std::vector<int64_t>> borders;
  // Images, about -1 to 1.
  std::vector<float> images;    // [rows, channels, image, image]
  std::vector<int64_t> labels;  // [rows]
  std::vector<float> targets;   // [rows, classes], each row adds up to 1; empty: the labels are all there is
};

class Batches {
 public:
  virtual ~Batches() = default;
  // Samples per epoch; 0 = endless. Positions go on past an epoch.
  virtual int64_t samples() const = 0;
  // Samples [first, first + rows), one per row. Safe to call from several threads.
  virtual Batch batch(uint64_t first, int64_t rows) const = 0;
  // One line for the log.
  virtual std::string describe() const = 0;
};

// Training: shuffled, and augmented as the config says. Test: as written, nothing random.
std::unique_ptr<Batches> open_batches(const DataConfig& config, Split split, const SampleShape& shape, uint64_t seed);

std::unique_ptr<Batches> token_batches(std::unique_ptr<Dataset> dataset, int64_t context);

}  // namespace siamese::data
