#include "siamese/io/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/checksum.h"
#include "siamese/io/message.h"
#include "siamese/io/safetensors_header.h"

namespace siamese::io {

static_assert(std::endian::native == std::endian::little, "stored numbers are read and written in place");

namespace {

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kLongestHeader = 100'000'000;  // as the format's reference refuses
constexpr size_t kDataAlignment = 64;
constexpr const char* kTensorSums = "xxh3";
constexpr const char* kHeaderSum = "xxh3_header";
constexpr const char* kTensorSumsMark = "\"xxh3\":\"";  // text of ours in a header: no string can hold it unescaped
constexpr const char* kHeaderSumMark = "\"xxh3_header\":\"";
const std::string kNoSum(16, '0');

// The shape as signed dimensions and its bytes; false when either does not fit. A zero does not excuse the others:
// strides made from them would overflow all the same.
bool shape_bytes(const SafetensorsEntry& entry, std::vector<int64_t>& shape, uint64_t& bytes) {
  constexpr auto kLargest = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  uint64_t nonzero = dtype_size(entry.dtype);
  bool empty = false;
  for (const uint64_t dimension : entry.shape) {
    if (dimension == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(nonzero, dimension, &nonzero) || nonzero > kLargest) {
      return false;
    }
    shape.push_back(static_cast<int64_t>(dimension));
  }
  bytes = empty ? 0 : nonzero;
  return true;
}

TensorView view_of(const SafetensorsEntry& entry, std::span<const std::byte> data, std::string_view file) {
  const auto refuse = [&](const std::string& what) {
    return DataError(fmt::format("{}: tensor {}: {}", file, in_quotes(entry.name), what));
  };
  if (entry.begin > entry.end || entry.end > data.size()) {
    throw refuse(fmt::format("expected data_offsets inside the {} bytes of data, got [{}, {}]", data.size(),
                             entry.begin, entry.end));
  }
  TensorView view{.name = entry.name, .dtype = entry.dtype, .shape = {}};
  uint64_t expected = 0;
  if (!shape_bytes(entry, view.shape, expected)) {
    const auto most = static_cast<std::ptrdiff_t>(std::min<size_t>(entry.shape.size(), 16));
    throw refuse(fmt::format("shape [{}] of {} dimensions does not fit in memory",
                             fmt::join(entry.shape.begin(), entry.shape.begin() + most, ", "), entry.shape.size()));
  }
  if (expected != entry.end - entry.begin) {
    throw refuse(fmt::format("expected {} bytes for {} {}, got data_offsets of {} bytes", expected,
                             enum_text(entry.dtype), shape_text(view.shape), entry.end - entry.begin));
  }
  view.data = data.data() + entry.begin;
  view.bytes = expected;
  view.file = file;
  return view;
}

// The checksums of `count` tensors, which leave the metadata; none when the file has none. The header's is compared.
std::vector<uint64_t> take_checksums(SafetensorsHeader& header, std::string_view text, std::string_view file) {
  const auto tensors = header.metadata.extract(kTensorSums);
  const auto own = header.metadata.extract(kHeaderSum);
  if (tensors.empty() && own.empty()) return {};
  const auto wrong = own.empty() ? "its checksum is missing" : seal_error(text, kHeaderSumMark);
  if (wrong) {
    throw DataError(
        fmt::format("{}: header: {}: it was damaged, or changed by a program that kept our metadata", file, *wrong));
  }
  std::vector<uint64_t> sums;
  std::string_view left = tensors.empty() ? std::string_view() : std::string_view(tensors.mapped());
  while (!left.empty()) {
    const size_t end = std::min(left.find(' '), left.size());
    const auto sum = checksum_from_text(left.substr(0, end));
    if (!sum) break;
    sums.push_back(*sum);
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  if (!left.empty() || sums.size() != header.entries.size()) {
    throw DataError(fmt::format("{}: metadata {}: expected {} checksums of 16 digits, got {}", file, kTensorSums,
                                header.entries.size(), sums.size()));
  }
  return sums;
}

}  // namespace

SafetensorsContent parse_safetensors(std::span<const std::byte> bytes, std::string_view name) {
  if (bytes.size() < kLengthBytes) {
    throw DataError(fmt::format("{}: not a safetensors file: expected at least {} bytes, got {}", name, kLengthBytes,
                                bytes.size()));
  }
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), sizeof header_bytes);
  if (header_bytes > kLongestHeader) {
    throw DataError(fmt::format("{}: not a safetensors file: expected a header of at most {} bytes, got {}", name,
                                kLongestHeader, header_bytes));
  }
  if (header_bytes > bytes.size() - kLengthBytes) {
    throw DataError(fmt::format("{}: truncated safetensors file: expected a header of {} bytes, got {}", name,
                                header_bytes, bytes.size() - kLengthBytes));
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, header_bytes);
  if (!text.starts_with('{')) {
    throw DataError(fmt::format("{}: expected the header to be a JSON object starting with '{{' at byte {}, got {}",
                                name, kLengthBytes, text.empty() ? "nothing" : in_quotes(text.substr(0, 1))));
  }
  SafetensorsHeader header = parse_safetensors_header(text, name);
  const std::vector<uint64_t> sums = take_checksums(header, text, name);
  const auto data = bytes.subspan(kLengthBytes + header_bytes);

  std::sort(header.entries.begin(), header.entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  SafetensorsContent content;
  content.metadata = std::move(header.metadata);
  content.tensors.reserve(header.entries.size());
  uint64_t covered = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    content.tensors.push_back(view_of(entry, data, name));
    if (!sums.empty()) content.tensors.back().checksum = sums[content.tensors.size() - 1];
    if (entry.begin != covered) {
      throw DataError(fmt::format(
          "{}: tensor {}: expected its data at offset {} ({}), got {}", name, in_quotes(entry.name), covered,
          entry.begin < covered ? "it overlaps another" : "there is a hole before it", entry.begin));
    }
    covered = entry.end;
  }
  if (covered != data.size()) {
    throw DataError(
        fmt::format("{}: expected the tensors to cover all {} bytes of data, got {}", name, data.size(), covered));
  }
  return content;
}

SafetensorsFile::SafetensorsFile(MappedFile file, SafetensorsContent content)
    : file_(std::move(file)), content_(std::move(content)) {
  for (size_t i = 0; i < content_.tensors.size(); ++i) index_.emplace(content_.tensors[i].name, i);
}

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  MappedFile file(path);
  SafetensorsContent content = parse_safetensors(file.bytes(), path.string());
  return SafetensorsFile(std::move(file), std::move(content));
}

const TensorView* SafetensorsFile::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &content_.tensors[found->second];
}

void read_tensor(const TensorView& tensor, const BlockUse& use) {
  Checksum sum;
  static_assert(kChecksumBlock % 8 == 0, "blocks end between elements");
  for (size_t offset = 0; offset < tensor.bytes; offset += kChecksumBlock) {
    const std::span block(tensor.data + offset, std::min(kChecksumBlock, tensor.bytes - offset));
    if (tensor.checksum) sum.add(block);
    if (use) use(offset, block);
  }
  if (!tensor.checksum || *tensor.checksum == sum.value()) return;
  throw DataError(fmt::format("{}: tensor {}: expected the checksum {}, got {}: its data was damaged", tensor.file,
                              in_quotes(tensor.name), checksum_text(*tensor.checksum), checksum_text(sum.value())));
}

void verify(const TensorView& tensor) {
  if (tensor.checksum) read_tensor(tensor, nullptr);
}

namespace {

// By descending dtype, then name.
std::vector<const TensorView*> ordered(const std::filesystem::path& path, std::span<const TensorView> tensors) {
  std::vector<const TensorView*> order;
  std::set<std::string_view> names;
  for (const TensorView& tensor : tensors) {
    if (tensor.name == "__metadata__" || !names.insert(tensor.name).second) {
      throw UsageError(fmt::format("{}: expected tensor names that differ and are not __metadata__, got {}",
                                   path.string(), in_quotes(tensor.name)));
    }
    order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(), [](const TensorView* a, const TensorView* b) {
    return a->dtype != b->dtype ? a->dtype > b->dtype : a->name < b->name;
  });
  return order;
}

// Padded, with zeros where the checksums will stand.
std::string header_text(const std::filesystem::path& path, const std::vector<const TensorView*>& order,
                        const std::map<std::string, std::string>& metadata) {
  if (metadata.contains(kTensorSums) || metadata.contains(kHeaderSum)) {
    throw UsageError(
        fmt::format("{}: metadata: {} and {} are the writer's own", path.string(), kTensorSums, kHeaderSum));
  }
  SafetensorsHeader header{.entries = {}, .metadata = metadata};
  uint64_t offset = 0;
  for (const TensorView* tensor : order) {
    SafetensorsEntry entry{.name = tensor->name,
                           .dtype = tensor->dtype,
                           .shape = {tensor->shape.begin(), tensor->shape.end()},
                           .begin = offset,
                           .end = offset + tensor->bytes};
    std::vector<int64_t> shape;
    uint64_t expected = 0;
    SIAMESE_INVARIANT(shape_bytes(entry, shape, expected) && expected == tensor->bytes);
    offset = entry.end;
    header.entries.push_back(std::move(entry));
  }
  const std::vector<std::string> none(order.size(), kNoSum);
  header.metadata[kTensorSums] = fmt::format("{}", fmt::join(none, " "));
  header.metadata[kHeaderSum] = kNoSum;
  std::string text = safetensors_header_text(header);
  text.append((kDataAlignment - (kLengthBytes + text.size()) % kDataAlignment) % kDataAlignment, ' ');
  if (text.size() > kLongestHeader) {
    throw UsageError(fmt::format("{}: expected a header of at most {} bytes, got {} (fewer tensors, shorter names)",
                                 path.string(), kLongestHeader, text.size()));
  }
  return text;
}

uint64_t write_data(AtomicFile& file, const TensorView& tensor, const TensorMaker& make) {
  SIAMESE_INVARIANT(tensor.data != nullptr || tensor.bytes == 0 || make != nullptr);
  const bool made = tensor.data == nullptr && tensor.bytes > 0;
  const std::shared_ptr<const std::byte> data = made ? make(tensor) : nullptr;
  TensorView written = tensor;
  if (made) written.data = data.get();
  Checksum sum;
  read_tensor(written, [&](size_t, std::span<const std::byte> block) {
    sum.add(block);
    file.write(block);
  });
  return sum.value();
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                       const std::map<std::string, std::string>& metadata, const TensorMaker& make, Standing standing) {
  const std::vector<const TensorView*> order = ordered(path, tensors);
  std::string text = header_text(path, order, metadata);
  const uint64_t header_bytes = text.size();
  AtomicFile file(path, standing);
  file.write(std::as_bytes(std::span(&header_bytes, 1)));
  file.write(text);
  size_t place = text.find(kTensorSumsMark) + std::string_view(kTensorSumsMark).size();
  for (const TensorView* tensor : order) {
    text.replace(place, kNoSum.size(), checksum_text(write_data(file, *tensor, make)));
    place += kNoSum.size() + 1;
  }
  seal(text, kHeaderSumMark);
  file.rewrite(kLengthBytes, text);
  file.commit();
}

}  // namespace siamese::io
