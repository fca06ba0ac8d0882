#include "siamese/io/npz.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <zlib.h>

#include "siamese/base/check.h"
#include "siamese/io/atomic_file.h"

namespace siamese::io {

namespace npz_detail {

// Little-endian numbers of a ZIP archive, one after the other.
class Fields {
 public:
  Fields& u16(uint64_t value) { return add(value, 2); }
  Fields& u32(uint64_t value) { return add(value, 4); }
  Fields& u64(uint64_t value) { return add(value, 8); }
  Fields& text(std::string_view value) {
    text_ += value;
    return *this;
  }
  const std::string& all() const { return text_; }

 private:
  Fields& add(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) text_.push_back(static_cast<char>(value >> (8 * i)));
    return *this;
  }

  std::string text_;
};

constexpr uint64_t kVersion = 45;       // of ZIP: the first with 64-bit fields, which are used whatever the size
constexpr uint64_t kDate = 0x0021;      // 1 January 1980, as numpy writes: the same images, the same bytes
constexpr uint64_t kIn64 = 0xffffffff;  // in a 32-bit field: the extra field has it
constexpr uint64_t kEntryMark = 0x04034b50, kDirectoryMark = 0x02014b50, kEndMark = 0x06054b50;
constexpr uint64_t kEnd64Mark = 0x06064b50, kLocator64Mark = 0x07064b50;

uint32_t add_to_crc(uint32_t crc, std::span<const uint8_t> bytes) {
  constexpr size_t kMost = std::numeric_limits<uInt>::max();
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(kMost, bytes.size()));
    crc = static_cast<uint32_t>(::crc32(crc, piece.data(), static_cast<uInt>(piece.size())));
    bytes = bytes.subspan(piece.size());
  }
  return crc;
}

}  // namespace npz_detail

std::string npy_header(const std::vector<int64_t>& shape) {
  std::string sizes;
  for (const int64_t size : shape) sizes += fmt::format("{}, ", size);
  if (shape.size() > 1) sizes.resize(sizes.size() - 2);  // a tuple of one keeps its comma
  if (shape.size() == 1) sizes.resize(sizes.size() - 1);
  std::string dict = fmt::format("{{'descr': '|u1', 'fortran_order': False, 'shape': ({}), }}", sizes);
  constexpr size_t kBefore = 10, kAlignment = 64;  // magic, version and length; where the data begins
  while ((kBefore + dict.size() + 1) % kAlignment != 0) dict.push_back(' ');
  dict.push_back('\n');
  return npz_detail::Fields().text(std::string_view("\x93NUMPY\x01\x00", 8)).u16(dict.size()).text(dict).all();
}

void write_npz(const std::filesystem::path& path, std::string_view name, const std::vector<int64_t>& shape,
               std::span<const uint8_t> bytes) {
  using namespace npz_detail;
  uint64_t count = 1;
  for (const int64_t size : shape) count *= static_cast<uint64_t>(size);
  if (count != bytes.size()) {
    throw UsageError(
        fmt::format("npz array {}: expected {} bytes, as its shape says, got {}", name, count, bytes.size()));
  }
  const std::string header = npy_header(shape), file = std::string(name) + ".npy";
  const auto* const begin = reinterpret_cast<const uint8_t*>(header.data());
  const uint32_t crc = add_to_crc(add_to_crc(0, {begin, header.size()}), bytes);
  const uint64_t size = header.size() + bytes.size();
  // Sizes stand in the extra field of the 64-bit kind (1): 16 bytes in an entry, in the directory with the offset 24.
  const auto described = [&](Fields fields, const std::string& extra) {
    fields.u16(0).u16(0).u16(0).u16(kDate).u32(crc).u32(kIn64).u32(kIn64);  // flags, stored, time, date
    return fields.u16(file.size()).u16(extra.size());
  };
  const std::string entry_extra = Fields().u16(1).u16(16).u64(size).u64(size).all();
  const std::string entry =
      described(Fields().u32(kEntryMark).u16(kVersion), entry_extra).text(file).text(entry_extra).all();
  const std::string directory_extra = Fields().u16(1).u16(24).u64(size).u64(size).u64(0).all();
  const std::string directory = described(Fields().u32(kDirectoryMark).u16(kVersion).u16(kVersion), directory_extra)
                                    .u16(0)  // comment
                                    .u16(0)  // disk
                                    .u16(0)  // kind of content
                                    .u32(0)  // attributes
                                    .u32(kIn64)
                                    .text(file)
                                    .text(directory_extra)
                                    .all();
  const uint64_t directory_at = entry.size() + size, end64_at = directory_at + directory.size();
  AtomicFile out(path);
  out.write(entry);
  out.write(header);
  out.write(std::as_bytes(bytes));
  out.write(directory);
  out.write(Fields().u32(kEnd64Mark).u64(44).u16(kVersion).u16(kVersion).u32(0).u32(0).u64(1).u64(1).all());
  out.write(Fields().u64(directory.size()).u64(directory_at).u32(kLocator64Mark).u32(0).u64(end64_at).u32(1).all());
  out.write(Fields().u32(kEndMark).u16(0).u16(0).u16(1).u16(1).u32(directory.size()).u32(kIn64).u16(0).all());
  out.commit();
}

}  // namespace siamese::io
