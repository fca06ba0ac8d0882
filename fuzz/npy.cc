#include "siamese/io/npy.h"

#include "fuzz/contract.h"

namespace siamese::fuzz {

void check_npy(Bytes bytes) {
  reads_or_refuses([&] {
    const io::NpyView view = io::parse_npy(bytes, "file");
    require_inside(view.data.data(), view.data.size(), bytes);
    require(view.offset + view.data.size() == bytes.size(), "the data is the rest of the file");
    int64_t extent = static_cast<int64_t>(io::dtype_size(view.dtype));
    bool empty = false;
    for (const int64_t dimension : view.shape) {
      require(dimension >= 0, "a dimension is not negative");
      empty = empty || dimension == 0;
      require(dimension == 0 || !__builtin_mul_overflow(extent, dimension, &extent), "the extent fits in 63 bits");
    }
    require(view.data.size() == (empty ? 0 : static_cast<size_t>(extent)), "bytes are dtype x shape");
  });
}

}  // namespace siamese::fuzz
