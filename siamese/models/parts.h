// The parameters of a model by the part of it that they belong to.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "siamese/base/enum_text.h"
#include "siamese/nn/parameters.h"

namespace siamese::models {

enum class ModelPart {
  embedding,  // tables of tokens, positions and labels, patches, timesteps
  attention,
  ffn,         // dense, or experts with their routers
  modulation,  // dit: scale, shift and gate of each block
  norm,        // gains and shifts, wherever they stand
  scheme,      // what else the residual connections own
  head,        // 0 where it is the embedding (model.tied)
};
constexpr size_t kModelParts = 7;

// By name and kind: every parameter of every family has one.
ModelPart part_of(const nn::Parameter& parameter);

// Whether products alone read a weight, as their operand (ops/operand.h): with products in bfloat16 no pass needs its
// float32 numbers. The matrices of attention and of (experts') feed-forward branches, and a head that is no table of
// embeddings. The modulations of a dit and routers are read in float32, and patches are too few to tell.
bool is_operand_alone(const nn::Parameter& parameter);

// Elements, by ModelPart; they add up to Parameters::count().
std::array<int64_t, kModelParts> count_by_part(const nn::Parameters& parameters);

// Elements of the parameters of each block, in their order: what has to be whole at one time where weights are shared
// out. What they do not hold stands outside the blocks.
std::vector<int64_t> count_by_block(const nn::Parameters& parameters);

}  // namespace siamese::models

template <>
struct siamese::EnumText<siamese::models::ModelPart> {
  static constexpr EnumNames<models::ModelPart, siamese::models::kModelParts> names{
      {{models::ModelPart::embedding, "embedding"},
       {models::ModelPart::attention, "attention"},
       {models::ModelPart::ffn, "ffn"},
       {models::ModelPart::modulation, "modulation"},
       {models::ModelPart::norm, "norm"},
       {models::ModelPart::scheme, "scheme"},
       {models::ModelPart::head, "head"}}};
};
