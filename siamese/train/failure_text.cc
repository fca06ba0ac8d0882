#include "siamese/train/failure_text.h"

#include <new>

#include <c10/util/Exception.h>

namespace siamese::train {
namespace {

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

std::string failure_text(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return "out of memory";
  const auto* const of_torch = dynamic_cast<const c10::Error*>(&error);
  if (of_torch == nullptr) return first_line(error.what());
  const std::string what = first_line(of_torch->what_without_backtrace());
  return (what.find("can't allocate memory") != std::string::npos ? "out of memory: " : "LibTorch: ") + what;
}

}  // namespace siamese::train
