#include "siamese/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace siamese {

void invariant_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "siamese: internal error: %s:%d: %s does not hold\n", file, line, condition);
  std::abort();
}

}  // namespace siamese
