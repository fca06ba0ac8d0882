#include "siamese/io/llama2c.h"

#include "fuzz/contract.h"

namespace siamese::fuzz {

// Every tensor lies in the file, one after the other, and is as long as its shape says.
void check_llama2c(Bytes bytes) {
  reads_or_refuses([&] {
    const io::SafetensorsContent content = io::parse_llama2c(bytes, "file");
    const std::byte* next = bytes.data();
    for (const io::TensorView& tensor : content.tensors) {
      require_inside(tensor.data, tensor.bytes, bytes);
      require(tensor.data >= next, "the tensors come one after the other");
      next = tensor.data + tensor.bytes;
      size_t extent = sizeof(float);
      for (const int64_t size : tensor.shape) extent *= static_cast<size_t>(size);
      require(tensor.bytes == extent, "bytes are float32 x shape");
    }
    require(content.metadata.size() == 4, "the header is handed on");
  });
}

}  // namespace siamese::fuzz
