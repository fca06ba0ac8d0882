// safetensors: [u64 header bytes N, little-endian][N bytes of JSON, space-padded][data].
//   {"__metadata__": {text: text}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end)}, ...}
// The reader is strict: each key once, spans exactly dtype x shape, the data covered without overlap or hole. Anything
// else is a DataError with the file, the tensor, what was expected and what came.
// The writer is deterministic: same tensors and metadata, same bytes. Data starts at a multiple of 64 bytes, tensors
// lie by descending DType, then name, so each is naturally aligned.
// Two entries of the metadata are ours alone (io/checksum.h), and no reader hands them on: "xxh3", the checksums of the
// tensors in the order of their data, and "xxh3_header", that of the header with zeros in its place. The header's is
// checked when a file is opened, a tensor's when its data is read. Files of others have neither.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "siamese/io/atomic_file.h"
#include "siamese/io/dtype.h"
#include "siamese/io/mapped_file.h"

namespace siamese::io {

// `data` points into a mapping or the caller's memory, row-major, `bytes` = dtype size x product of shape. In files
// from other writers it may be unaligned: copy with memcpy.
struct TensorView {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  const std::byte* data = nullptr;
  size_t bytes = 0;
  std::optional<uint64_t> checksum;  // what the file says of the data
  std::string file;                  // what errors call it
};

// Hands the data of a tensor to `use`, block after block in order, each hashed just before so that it comes from the
// cache. DataError after the last when the checksum is not the stored one; without a stored one nothing is compared.
// Blocks end between elements.
using BlockUse = std::function<void(size_t offset, std::span<const std::byte> block)>;
void read_tensor(const TensorView& tensor, const BlockUse& use);
// Only the comparison, right before data is used in place.
void verify(const TensorView& tensor);

struct SafetensorsContent {
  std::vector<TensorView> tensors;  // in file order
  std::map<std::string, std::string> metadata;
};

// The views point into `bytes`; `name` is what errors call it.
SafetensorsContent parse_safetensors(std::span<const std::byte> bytes, std::string_view name);

class SafetensorsFile {
 public:
  static SafetensorsFile open(const std::filesystem::path& path);

  const std::vector<TensorView>& tensors() const { return content_.tensors; }  // in file order
  const TensorView* find(std::string_view name) const;                         // nullptr when there is none
  const std::map<std::string, std::string>& metadata() const { return content_.metadata; }

 private:
  SafetensorsFile(MappedFile file, SafetensorsContent content);

  MappedFile file_;
  SafetensorsContent content_;
  std::map<std::string, size_t, std::less<>> index_;
};

// Makes the data of a tensor whose view has none yet, `bytes` of it: asked once, when its turn to be written comes, and
// let go afterwards. So a file can be larger than the memory.
using TensorMaker = std::function<std::shared_ptr<const std::byte>(const TensorView& tensor)>;

// Streams the tensors to disk without a second copy in memory; written aside and renamed. A name twice, a name that
// the format or we reserve or text that is not UTF-8 is a UsageError. A tensor with a checksum is verified on the way.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                       const std::map<std::string, std::string>& metadata, const TensorMaker& make = nullptr,
                       Standing standing = Standing::replaced);

}  // namespace siamese::io
