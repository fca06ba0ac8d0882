#include "siamese/data/codec.h"

#include "siamese/base/check.h"
#include "siamese/data/arithmetic.h"
#include "siamese/data/text.h"
#include "siamese/data/tokens.h"

namespace siamese::data {

std::unique_ptr<Codec> make_codec(const DataConfig& config) {
  switch (config.source) {
    case Source::arithmetic:
      return arithmetic_codec();
    case Source::text:
      return byte_codec();
    default:
      break;
  }
  return token_id_codec();
}

}  // namespace siamese::data
