#include "siamese/residual/scheme_text.h"

#include "fuzz/contract.h"

namespace siamese::fuzz {

void check_scheme_text(Bytes bytes) {
  reads_or_refuses(
      [&] {
        const residual::SchemeText scheme = residual::parse_scheme_text(text_of(bytes));
        const std::string printed = residual::print_scheme_text(scheme);
        const residual::SchemeText again = reads([&] { return residual::parse_scheme_text(printed); });
        require(again.name == scheme.name, "the name is printed as it was read");
        require(again.arguments.entries.size() == scheme.arguments.entries.size(), "every argument is printed");
        for (size_t i = 0; i < scheme.arguments.entries.size(); ++i) {
          const auto& [key, value] = scheme.arguments.entries[i];
          const auto& [key_again, value_again] = again.arguments.entries[i];
          require(key == key_again && value.text == value_again.text, "an argument is printed as it was read");
        }
        require(residual::print_scheme_text(again) == printed, "printed twice it is the same");
      },
      false);
}

}  // namespace siamese::fuzz
