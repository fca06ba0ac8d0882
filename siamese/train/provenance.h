// Who trains, as run.json and the record of a sweep keep it (runs/provenance.h).
#pragma once

#include <cstdint>

#include "siamese/data/identity.h"
#include "siamese/runs/data_key.h"
#include "siamese/runs/provenance.h"
#include "siamese/train/config.h"

namespace siamese::train {

// This program with the LibTorch that it was built for.
runs::Build this_build();

// A stretch of training by this process that begins now, after `step` steps. apply_engine has been called.
runs::Stretch begin_stretch(const EngineConfig& engine, int64_t step, int64_t ranks = 1, int64_t asked_by = 0);

// The data of a run as one number for each part.
runs::DataKey data_key(const data::DataIdentity& identity);

}  // namespace siamese::train
