// What differs from block to block in a config.json, as OLMo 3 has it, and what ArchSpace's models add:
//   layer_types      of each block sliding_attention, with sliding_window, or full_attention <-> model.window and
//                    model.window_pattern; without the list every fourth block is full
//   rope_scaling     of full layers only <-> model.rope_scaling with rope_scaling_layers: full. Newer files have
//                    rope_parameters {full_attention: {...}, sliding_attention: {...}}; sliding layers are not scaled.
//   ArchSpace        depth_attention_stride, depth_attention_recent_window <-> model.depth_attention_*
#pragma once

#include <cstdint>

#include <nlohmann/json_fwd.hpp>

#include "siamese/formats/hf_reader.h"
#include "siamese/models/config.h"

namespace siamese::formats {

// Windows and rotary positions.
void read_layers(HfReader& reader);
void read_archspace(HfReader& reader);

nlohmann::ordered_json layered_rope(const models::ModelConfig& config);
void add_layers(const models::ModelConfig& config, nlohmann::ordered_json& text);
void add_archspace(const models::ModelConfig& config, nlohmann::ordered_json& text);

// null for 0.
nlohmann::ordered_json window_or_null(int64_t window);

}  // namespace siamese::formats
