#include "siamese/text/pattern.h"

#include <nlohmann/json.hpp>

namespace siamese::text {

Pattern::Pattern(const nlohmann::json& value, const std::string& where) {
  JsonPart part(value, where);
  if (part.find("Regex") != nullptr) {
    regex_ = std::make_unique<Regex>(part.text("Regex"), where);
  } else {
    literal_ = part.text("String");
  }
  part.done();
}

bool replace_all(const Pattern& pattern, std::string_view content, std::string_view text, std::string& out) {
  size_t copied = 0;
  bool any = false;
  pattern.each(text, [&](size_t begin, size_t end) {
    if (!any) out.clear();
    any = true;
    out.append(text.substr(copied, begin - copied)).append(content);
    copied = end;
  });
  if (any) out.append(text.substr(copied));
  return any;
}

}  // namespace siamese::text
