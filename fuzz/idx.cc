#include "siamese/io/idx.h"

#include "fuzz/contract.h"
#include "fuzz/memory_file.h"

namespace siamese::fuzz {

void check_idx(Bytes bytes) {
  const MemoryFile stored(bytes);
  reads_or_refuses([&] {
    const io::IdxFile file = io::IdxFile::open(stored.path());
    int64_t total = 1;
    for (const int64_t size : file.shape()) {
      require(size >= 0, "a size is not negative");
      require(!__builtin_mul_overflow(total, size, &total), "the sizes multiply without overflow");
    }
    require(static_cast<size_t>(total) == file.data().size(), "the data is as long as its sizes say");
    require(file.data().size() <= bytes.size(), "the data lies inside the file");
  });
}

}  // namespace siamese::fuzz
