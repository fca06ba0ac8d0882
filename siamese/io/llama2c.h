// A model file of llama2.c (its first format, without a version), little-endian:
//   7 x int32   dim, hidden, layers, heads, kv_heads, vocab (negative: the head has a matrix of its own), context
//   float32     embedding [vocab, dim]; then of all layers one after the other: attention norm [dim], q [dim, dim],
//               k and v [kv_heads dim / heads, dim], o [dim, dim], FFN norm [dim], w1 (gate) [hidden, dim], w2 [dim,
//               hidden], w3 (up) [hidden, dim]; final norm [dim]; cos and sin [context, dim / heads / 2] each, which
//               nobody needs; the head [vocab, dim] when it has one
// Its tensors are handed on under the names that Meta gave those of Llama (layers.0.attention.wq.weight ...).
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "siamese/io/safetensors.h"

namespace siamese::io {

inline constexpr std::string_view kLlama2cEnding = ".bin";
// `format` in the metadata, which else has the numbers of the header that no tensor tells: heads, kv_heads, context.
inline constexpr std::string_view kLlama2cFormat = "llama2.c";

// The views point into `bytes`; `name` is what errors call it. DataError when it is not such a file, with what was
// expected and what came.
SafetensorsContent parse_llama2c(std::span<const std::byte> bytes, std::string_view name);

}  // namespace siamese::io
