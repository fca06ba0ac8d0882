// The rotary positions of a config.json <-> model.rope_scaling. Newer files have `rope_parameters` {rope_type,
// rope_theta, ...}, older ones `rope_theta` and `rope_scaling` {type or rope_type, ...}.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "siamese/models/config.h"

namespace siamese::formats {

// model.rope_scaling of such an object. `key` and `file` are what errors call it; `outer` is the whole config.json:
// original_max_position_embeddings may stand there, and max_position_embeddings is what it means when it is missing.
// DataError for what we have not.
std::string rope_scaling_of_hf(const nlohmann::json& rope, const nlohmann::json& outer, const std::string& key,
                               const std::string& file);

// `rope_parameters` of a model, and `rope_scaling` for older versions (null when there is none).
nlohmann::ordered_json hf_rope_parameters(const models::ModelConfig& config);
nlohmann::ordered_json hf_rope_scaling(const models::ModelConfig& config);

}  // namespace siamese::formats
