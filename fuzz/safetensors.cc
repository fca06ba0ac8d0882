#include "siamese/io/safetensors.h"

#include <limits>

#include "fuzz/contract.h"

#include "siamese/io/safetensors_header.h"

namespace siamese::fuzz {
namespace {

// dtype size x the dimensions that are not 0, so that strides and sums over it fit; 0 when it does not fit.
uint64_t checked_extent(const io::TensorView& tensor) {
  uint64_t extent = io::dtype_size(tensor.dtype);
  for (const int64_t dimension : tensor.shape) {
    require(dimension >= 0, "a dimension is not negative");
    if (dimension > 0 && __builtin_mul_overflow(extent, static_cast<uint64_t>(dimension), &extent)) return 0;
  }
  return extent <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) ? extent : 0;
}

void check_content(const io::SafetensorsContent& content, Bytes bytes) {
  size_t total = 0;
  const std::byte* next = nullptr;
  for (const io::TensorView& tensor : content.tensors) {
    require_inside(tensor.data, tensor.bytes, bytes);
    require(next == nullptr || tensor.data == next, "the tensors lie side by side");
    next = tensor.data + tensor.bytes;
    const uint64_t extent = checked_extent(tensor);
    require(extent > 0, "the extent of a tensor fits in 63 bits");
    bool empty = false;
    for (const int64_t dimension : tensor.shape) empty = empty || dimension == 0;
    require(tensor.bytes == (empty ? 0 : extent), "bytes are dtype x shape");
    total += tensor.bytes;
  }
  uint64_t header = 0;
  for (size_t i = 8; i-- > 0;) header = header << 8 | std::to_integer<uint64_t>(bytes[i]);
  require(total == bytes.size() - 8 - header, "the tensors cover the data");
}

// Header -> text -> header is the identity.
void check_header(std::string_view json) {
  const io::SafetensorsHeader header = io::parse_safetensors_header(json, "header");
  const io::SafetensorsHeader again =
      reads([&] { return io::parse_safetensors_header(io::safetensors_header_text(header), "again"); });
  require(header.metadata == again.metadata, "the metadata is printed as it was read");
  require(header.entries.size() == again.entries.size(), "every entry is printed");
  for (size_t i = 0; i < header.entries.size(); ++i) {
    const auto& a = header.entries[i];
    const auto& b = again.entries[i];
    require(a.name == b.name && a.dtype == b.dtype && a.shape == b.shape && a.begin == b.begin && a.end == b.end,
            "an entry is printed as it was read");
  }
}

}  // namespace

void check_safetensors(Bytes bytes) {
  reads_or_refuses([&] { check_content(io::parse_safetensors(bytes, "file"), bytes); });
  if (bytes.size() > 8) reads_or_refuses([&] { check_header(text_of(bytes.subspan(8))); });
}

}  // namespace siamese::fuzz
