#include "siamese/io/png.h"

#include <cstring>
#include <vector>

#include <fmt/format.h>
#include <png.h>

#include "siamese/base/check.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/mapped_file.h"
#include "siamese/io/message.h"

namespace siamese::io {
namespace {

constexpr size_t kSignatureBytes = 8;

// libpng reports by calling back and documents longjmp as the way out: the message is kept here, and the functions
// that are jumped out of make no object with a destructor.
struct Reading {
  std::span<const std::byte> left;
  std::string failure;
};

void keep_failure(png_structp png, png_const_charp message) {
  static_cast<Reading*>(png_get_error_ptr(png))->failure = message;
  png_longjmp(png, 1);
}

void ignore_warning(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep out, size_t count) {
  auto* reading = static_cast<Reading*>(png_get_io_ptr(png));
  if (reading->left.size() < count) png_error(png, "the file ends too early");
  std::memcpy(out, reading->left.data(), count);
  reading->left = reading->left.subspan(count);
}

// Owns libpng's two structs.
struct Reader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  explicit Reader(Reading& reading) {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reading, keep_failure, ignore_warning);
    if (png != nullptr) info = png_create_info_struct(png);
    if (info == nullptr) throw SystemError("out of memory for a PNG reader");
  }
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
};

// Whatever is stored becomes 8 bits of grey, grey + alpha, RGB or RGB + alpha.
void ask_for_8_bits(png_structp png, png_infop info) {
  const auto type = png_get_color_type(png, info);
  if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  if (type == PNG_COLOR_TYPE_GRAY && png_get_bit_depth(png, info) < 8) png_set_expand_gray_1_2_4_to_8(png);
  if (png_get_valid(png, info, PNG_INFO_tRNS) != 0) png_set_tRNS_to_alpha(png);
  if (png_get_bit_depth(png, info) == 16) png_set_scale_16(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
}

bool read_header(Reader& reader, Reading& reading) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  png_set_user_limits(reader.png, 1U << 20, 1U << 20);
  // Texts, profiles and the like are skipped: libpng asks for the memory a chunk claims before it looks at the data.
  png_set_keep_unknown_chunks(reader.png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_set_read_fn(reader.png, &reading, read_bytes);
  png_read_info(reader.png, reader.info);
  return true;
}

bool read_rows(Reader& reader, png_bytepp rows) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  png_read_image(reader.png, rows);
  png_read_end(reader.png, nullptr);
  return true;
}

bool prepare(Reader& reader) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  ask_for_8_bits(reader.png, reader.info);
  return true;
}

// [pixels, channels + alpha] over white.
void lay_over_white(const std::vector<uint8_t>& stored, size_t stored_channels, Image& image) {
  const auto channels = static_cast<size_t>(image.channels);
  for (size_t i = 0; i < image.pixels.size() / channels; ++i) {
    const int alpha = stored[i * stored_channels + channels];
    for (size_t c = 0; c < channels; ++c) {
      const int value = stored[i * stored_channels + c];
      image.pixels[i * channels + c] = static_cast<uint8_t>((value * alpha + 255 * (255 - alpha) + 127) / 255);
    }
  }
}

void collect(png_structp png, png_bytep data, size_t count) {
  static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<const char*>(data), count);
}

void flush_nothing(png_structp) {}

bool write_rows(png_structp png, png_infop info, std::string& out, const Image& image) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_write_fn(png, &out, collect, flush_nothing);
  png_set_IHDR(png, info, static_cast<png_uint_32>(image.width), static_cast<png_uint_32>(image.height), 8,
               image.channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  for (int64_t y = 0; y < image.height; ++y) png_write_row(png, image.at(0, y));
  png_write_end(png, nullptr);
  return true;
}

}  // namespace

bool is_png(std::span<const std::byte> bytes) {
  return bytes.size() >= kSignatureBytes &&
         png_sig_cmp(reinterpret_cast<png_const_bytep>(bytes.data()), 0, kSignatureBytes) == 0;
}

Image decode_png(std::span<const std::byte> bytes, const std::string& name) {
  const auto refuse = [&name](const std::string& why) {
    throw DataError(fmt::format("{}: not a readable PNG image: {}", name, why));
  };
  if (!is_png(bytes)) refuse("the PNG signature is missing");
  Reading reading{bytes, {}};
  Reader reader(reading);
  if (!read_header(reader, reading)) refuse(in_quotes(reading.failure));
  const auto width = static_cast<int64_t>(png_get_image_width(reader.png, reader.info));
  const auto height = static_cast<int64_t>(png_get_image_height(reader.png, reader.info));
  if (width * height > kMostPixels) {
    refuse(fmt::format("expected at most {} pixels, got {} x {}", kMostPixels, width, height));
  }
  // Deflate makes at most 1032 bytes of one: a file too short for its rows is refused before memory is asked for.
  const size_t packed = png_get_rowbytes(reader.png, reader.info) * static_cast<size_t>(height);
  if (packed / 1032 > bytes.size()) {
    refuse(fmt::format("{} x {} pixels cannot lie in {} bytes", width, height, bytes.size()));
  }
  if (!prepare(reader)) refuse(in_quotes(reading.failure));
  const size_t stored_channels = png_get_channels(reader.png, reader.info);
  const size_t row_bytes = png_get_rowbytes(reader.png, reader.info);
  SIAMESE_INVARIANT(row_bytes == static_cast<size_t>(width) * stored_channels);
  std::vector<uint8_t> stored(row_bytes * static_cast<size_t>(height));
  std::vector<png_bytep> rows(static_cast<size_t>(height));
  for (size_t y = 0; y < rows.size(); ++y) rows[y] = stored.data() + y * row_bytes;
  if (!read_rows(reader, rows.data())) refuse(in_quotes(reading.failure));
  Image image(width, height, stored_channels >= 3 ? 3 : 1);
  if (stored_channels % 2 == 0) {
    lay_over_white(stored, stored_channels, image);
  } else {
    image.pixels = std::move(stored);
  }
  return image;
}

std::string encode_png(const Image& image) {
  SIAMESE_INVARIANT((image.channels == 1 || image.channels == 3) && image.width > 0 && image.height > 0);
  Reading failure;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &failure, keep_failure, ignore_warning);
  png_infop info = png != nullptr ? png_create_info_struct(png) : nullptr;
  std::string out;
  const bool written = info != nullptr && write_rows(png, info, out, image);
  png_destroy_write_struct(&png, &info);
  if (!written) throw SystemError("cannot make a PNG image: " + failure.failure);
  return out;
}

Image read_png(const std::filesystem::path& path) { return decode_png(MappedFile(path).bytes(), path.string()); }

void write_png(const std::filesystem::path& path, const Image& image) { write_file_atomic(path, encode_png(image)); }

}  // namespace siamese::io
