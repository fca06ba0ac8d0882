#include "siamese/io/jpeg.h"

#include "fuzz/image_checks.h"

namespace siamese::fuzz {

void check_jpeg(Bytes bytes) {
  reads_or_refuses([&] { require_sound(io::decode_jpeg(bytes, "file")); });
}

}  // namespace siamese::fuzz
