#include "siamese/data/batches.h"

#include "siamese/base/check.h"
#include "siamese/data/files.h"
#include "siamese/data/open_images.h"

namespace siamese::data {
namespace {

class TokenBatches : public Batches {
 public:
  TokenBatches(std::unique_ptr<Dataset> dataset, int64_t context) : dataset_(std::move(dataset)), context_(context) {}

  int64_t samples() const override { return dataset_->samples(); }
  std::string describe() const override { return dataset_->describe(); }

  Batch batch(uint64_t first, int64_t rows) const override {
    SIAMESE_INVARIANT(context_ > 0 && rows > 0);
    Batch batch;
    batch.rows = rows;
    batch.shape = {.context = context_, .vocab = dataset_->vocab()};
    batch.first_position = first;
    const auto width = static_cast<size_t>(context_);
    batch.tokens.resize(static_cast<size_t>(rows) * (width + 1));
    batch.weights.resize(static_cast<size_t>(rows) * width);
    for (size_t row = 0; row < static_cast<size_t>(rows); ++row) {
      dataset_->sample(first + row, std::span(batch.tokens).subspan(row * (width + 1), width + 1),
                       std::span(batch.weights).subspan(row * width, width));
      auto borders = dataset_->borders(first + row);
      if (!borders) continue;
      // The first token of a document cannot be told from the document before it.
      for (const int64_t border : *borders) batch.weights[row * width + static_cast<size_t>(border) - 1] = 0;
      batch.borders.push_back(std::move(*borders));
    }
    return batch;
  }

 private:
  std::unique_ptr<Dataset> dataset_;
  int64_t context_;
};

}  // namespace

std::unique_ptr<Batches> token_batches(std::unique_ptr<Dataset> dataset, int64_t context) {
  return std::make_unique<TokenBatches>(std::move(dataset), context);
}

std::unique_ptr<Batches> open_batches(const DataConfig& asked, Split split, const SampleShape& shape, uint64_t seed) {
  check(asked);
  const DataConfig config = located(asked);
  check_folders(config);
  if (shape.is_image()) return open_images(config, split, shape, seed);
  return token_batches(open_dataset(config, split, shape.context, shape.vocab, seed), shape.context);
}

}  // namespace siamese::data
