#include "siamese/io/cifar.h"

#include "fuzz/contract.h"
#include "fuzz/memory_file.h"

namespace siamese::fuzz {

void check_cifar(Bytes bytes) {
  if (bytes.empty()) return;
  const bool ten = std::to_integer<int>(bytes[0]) % 2 == 0;
  const MemoryFile stored(bytes.subspan(1));
  reads_or_refuses([&] {
    const auto file = io::CifarFile::open(stored.path(), ten ? io::CifarKind::cifar10 : io::CifarKind::cifar100);
    for (int64_t i = 0; i < file.size(); ++i) {
      require(file.label(i) >= 0 && file.label(i) < (ten ? 10 : 100), "a label is a class");
      require(file.image(i).pixels.size() == 3072, "an image has 32 x 32 x 3 values");
    }
  });
}

}  // namespace siamese::fuzz
