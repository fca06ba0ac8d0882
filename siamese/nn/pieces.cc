#include "siamese/nn/pieces.h"

#include <numeric>

#include <ATen/ATen.h>

#include "siamese/nn/expect.h"

namespace siamese::nn {

std::vector<int64_t> piece_lengths(const std::vector<std::vector<int64_t>>& borders, int64_t tokens) {
  std::vector<int64_t> lengths;
  for (const auto& row : borders) {
    int64_t begin = 0;
    for (const int64_t border : row) {
      expect_that(border > begin && border <= tokens, "borders of documents",
                  "ascending from 1 to " + std::to_string(tokens), border);
      lengths.push_back(border - begin);
      begin = border;
    }
    if (begin < tokens) lengths.push_back(tokens - begin);
  }
  return lengths;
}

at::Tensor piece_positions(const std::vector<int64_t>& lengths, int64_t rows, int64_t tokens) {
  const at::Tensor positions = at::empty({rows, tokens}, at::kLong);
  int64_t* out = positions.mutable_data_ptr<int64_t>();
  for (const int64_t length : lengths) {
    std::iota(out, out + length, int64_t{0});
    out += length;
  }
  return positions;
}

at::Tensor attention_in_pieces(const at::Tensor& qkv, const ops::AttentionArguments& arguments,
                               const std::vector<int64_t>& lengths) {
  const int64_t rows = qkv.size(0), tokens = qkv.size(1);
  expect_that(std::accumulate(lengths.begin(), lengths.end(), int64_t{0}) == rows * tokens, "pieces of documents",
              "as many tokens as there are", rows * tokens);
  // Neighbours of one length, as rows without a border are, are one batch.
  std::vector<int64_t> length_of, size_of;
  for (const int64_t length : lengths) {
    if (length_of.empty() || length_of.back() != length) {
      length_of.push_back(length);
      size_of.push_back(0);
    }
    size_of.back() += length;
  }
  const auto parts = qkv.reshape({rows * tokens, qkv.size(2)}).split_with_sizes(size_of);
  std::vector<at::Tensor> seen;
  for (size_t i = 0; i < parts.size(); ++i) {
    ops::AttentionArguments own = arguments;
    if (own.cos.defined()) {
      own.cos = own.cos.narrow(0, 0, length_of[i]);
      own.sin = own.sin.narrow(0, 0, length_of[i]);
    }
    const at::Tensor one = ops::attention(parts[i].reshape({-1, length_of[i], qkv.size(2)}), own);
    seen.push_back(one.reshape({size_of[i], one.size(2)}));
  }
  return at::cat(seen).reshape({rows, tokens, -1});
}

}  // namespace siamese::nn
