// The tables, one function each; layout.h says what they hold.
#pragma once

#include "siamese/formats/layout.h"

namespace siamese::formats {

// The published SiameseNorm model files (official_tables.cc).
const LayoutTable& official_lm_table();
const LayoutTable& official_deit_table();
const LayoutTable& official_dit_table();

// Meta's own names for Llama, which llama2.c's files have, too (meta_tables.cc).
const LayoutTable& meta_llama_table();

// The names of the transformers package (hf_tables.cc).
const LayoutTable& hf_llama_table();
const LayoutTable& hf_olmo2_table();
const LayoutTable& hf_olmo3_table();
const LayoutTable& hf_gpt2_table();
const LayoutTable& hf_qwen2_table();
const LayoutTable& hf_mistral_table();
const LayoutTable& hf_siamese_table();
const LayoutTable& archspace_olmo3_table();
const LayoutTable& hf_table();

}  // namespace siamese::formats
