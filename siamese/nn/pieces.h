// Attention within the pieces of a packed batch: documents that stand one after the other in its rows and do not see
// each other. Each piece is a sequence of its own, with positions from 0: the same op on its rows alone, so that no
// mask exists and nothing is computed for pairs that do not see each other.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/ops/attention.h"

namespace siamese::nn {

// The lengths of the pieces of all rows, one after the other: each row of `tokens` tokens is cut where `borders` says.
// UsageError unless the borders of a row ascend from 1 to at most `tokens` (where nothing is left to cut off).
std::vector<int64_t> piece_lengths(const std::vector<std::vector<int64_t>>& borders, int64_t tokens);

// The position of each token in its piece, int64 [rows, tokens].
at::Tensor piece_positions(const std::vector<int64_t>& lengths, int64_t rows, int64_t tokens);

// qkv [rows, tokens, ...] as ops::attention takes it; cos and sin of `arguments` are tables of at least the longest
// piece.
at::Tensor attention_in_pieces(const at::Tensor& qkv, const ops::AttentionArguments& arguments,
                               const std::vector<int64_t>& lengths);

}  // namespace siamese::nn
