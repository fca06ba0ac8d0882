#include "siamese/formats/layout.h"

#include "siamese/base/join.h"
#include "siamese/base/nearest.h"
#include "siamese/formats/tables.h"

namespace siamese::formats {

const LayoutTable& table_of(Layout layout) {
  static constexpr LayoutTable kOurs{};
  switch (layout) {
    case Layout::official_lm:
      return official_lm_table();
    case Layout::official_deit:
      return official_deit_table();
    case Layout::official_dit:
      return official_dit_table();
    case Layout::meta_llama:
      return meta_llama_table();
    case Layout::hf_llama:
      return hf_llama_table();
    case Layout::hf_olmo2:
      return hf_olmo2_table();
    case Layout::hf_olmo3:
      return hf_olmo3_table();
    case Layout::hf_gpt2:
      return hf_gpt2_table();
    case Layout::hf_qwen2:
      return hf_qwen2_table();
    case Layout::hf_mistral:
      return hf_mistral_table();
    case Layout::hf_siamese:
      return hf_siamese_table();
    case Layout::archspace_olmo3:
      return archspace_olmo3_table();
    case Layout::hf:
      return hf_table();
    case Layout::siamese:
      break;
  }
  return kOurs;
}

Layout layout_from_text(std::string_view flag, std::string_view text) {
  const auto layout = enum_from_text<Layout>(text);
  if (!layout) {
    const auto known = enum_choices<Layout>();
    throw UsageError(std::string(flag) + ": expected a layout, one of " + join(known) + ", got '" + std::string(text) +
                     "'" + did_you_mean(text, known));
  }
  return *layout;
}

std::string_view scheme_of(Layout layout) {
  for (const Setting& setting : table_of(layout).fixed) {
    if (setting.key == "residual") return setting.value;
  }
  return "";
}

}  // namespace siamese::formats
