#include "siamese/io/jpeg.h"

#include <csetjmp>
#include <cstdio>
#include <vector>

#include <fmt/format.h>
#include <jerror.h>
#include <jpeglib.h>

#include "siamese/base/check.h"
#include "siamese/io/mapped_file.h"
#include "siamese/io/message.h"

namespace siamese::io {
namespace {

// The library reports by calling back and expects not to be returned to (its own handler calls exit).
struct Errors {
  jpeg_error_mgr base;  // first: the library hands back a pointer to it
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX];
};

void fail(j_common_ptr info) {
  auto* errors = reinterpret_cast<Errors*>(info->err);
  info->err->format_message(info, errors->message);
  std::longjmp(errors->back, 1);
}

// Level -1 are warnings. Large photo collections hold files with stray bytes, which every program reads; only an end
// that comes too early is damage.
void report(j_common_ptr info, int level) {
  if (level < 0 && info->err->msg_code == JWRN_JPEG_EOF) fail(info);
}

void print_nothing(j_common_ptr) {}

// A progressive image is decoded once per scan; a dozen are usual, and a small file may hold many thousand.
void refuse_many_scans(j_common_ptr info) {
  constexpr int kMostScans = 64;
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMostScans) return;
  auto* errors = reinterpret_cast<Errors*>(info->err);
  std::snprintf(errors->message, sizeof errors->message, "more than %d scans", kMostScans);
  std::longjmp(errors->back, 1);
}

struct Decoder {
  jpeg_decompress_struct info{};
  Errors errors{};
  jpeg_progress_mgr progress{};
  Decoder() {
    info.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = fail;
    errors.base.emit_message = report;
    errors.base.output_message = print_nothing;
  }
  ~Decoder() { jpeg_destroy_decompress(&info); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
};

// Both may be left by longjmp: no object with a destructor is made in them.
bool read_header(Decoder& decoder, std::span<const std::byte> bytes) {
  if (setjmp(decoder.errors.back) != 0) return false;
  jpeg_create_decompress(&decoder.info);
  decoder.progress.progress_monitor = refuse_many_scans;
  decoder.info.progress = &decoder.progress;
  jpeg_mem_src(&decoder.info, reinterpret_cast<const unsigned char*>(bytes.data()),
               static_cast<unsigned long>(bytes.size()));
  jpeg_read_header(&decoder.info, TRUE);
  return true;
}

// Cyan, magenta, yellow, black as printers' files have them: 255 = no ink (Adobe), else the other way round.
void to_rgb(const std::vector<uint8_t>& inks, bool inverted, uint8_t* rgb) {
  for (size_t i = 0; i + 3 < inks.size(); i += 4) {
    const auto light = [&](size_t ink) { return inverted ? inks[i + ink] : 255 - inks[i + ink]; };
    for (size_t c = 0; c < 3; ++c) *rgb++ = static_cast<uint8_t>((light(c) * light(3) + 127) / 255);
  }
}

bool read_rows(Decoder& decoder, std::vector<uint8_t>& inks, Image& image) {
  if (setjmp(decoder.errors.back) != 0) return false;
  const bool printed = decoder.info.num_components == 4;
  decoder.info.out_color_space = printed ? JCS_CMYK : image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  decoder.info.dct_method = JDCT_ISLOW;
  jpeg_start_decompress(&decoder.info);
  while (decoder.info.output_scanline < decoder.info.output_height) {
    uint8_t* const pixels = image.at(0, decoder.info.output_scanline);
    JSAMPROW row = printed ? inks.data() : pixels;
    jpeg_read_scanlines(&decoder.info, &row, 1);
    if (printed) to_rgb(inks, decoder.info.saw_Adobe_marker != 0, pixels);
  }
  jpeg_finish_decompress(&decoder.info);
  return true;
}

}  // namespace

bool is_jpeg(std::span<const std::byte> bytes) {
  return bytes.size() >= 3 && bytes[0] == std::byte{0xFF} && bytes[1] == std::byte{0xD8} && bytes[2] == std::byte{0xFF};
}

Image decode_jpeg(std::span<const std::byte> bytes, const std::string& name) {
  const auto refuse = [&name](const std::string& why) {
    throw DataError(fmt::format("{}: not a readable JPEG image: {}", name, why));
  };
  if (!is_jpeg(bytes)) refuse("the JPEG signature is missing");
  Decoder decoder;
  if (!read_header(decoder, bytes)) refuse(in_quotes(decoder.errors.message));
  const jpeg_decompress_struct& info = decoder.info;
  if (info.num_components != 1 && info.num_components != 3 && info.num_components != 4) {
    refuse(fmt::format("expected grey, RGB or CMYK, got {} components", info.num_components));
  }
  const auto width = static_cast<int64_t>(info.image_width);
  const auto height = static_cast<int64_t>(info.image_height);
  if (width * height > kMostPixels) {
    refuse(fmt::format("expected at most {} pixels, got {} x {}", kMostPixels, width, height));
  }
  // A block of 8 x 8 takes at least a bit, and at least a quarter of the blocks is stored for some component; where
  // data is missing the library invents grey. A file too short is refused before memory is asked for.
  constexpr int64_t kSmall = int64_t{1} << 22;
  if (width * height > kSmall && width * height / (int64_t{4} * 64 * 8) > static_cast<int64_t>(bytes.size())) {
    refuse(fmt::format("{} x {} pixels cannot lie in {} bytes", width, height, bytes.size()));
  }
  Image image(width, height, info.num_components == 1 ? 1 : 3);
  std::vector<uint8_t> inks(info.num_components == 4 ? static_cast<size_t>(4 * width) : 0);  // of one row
  if (!read_rows(decoder, inks, image)) refuse(in_quotes(decoder.errors.message));
  return image;
}

Image read_jpeg(const std::filesystem::path& path) { return decode_jpeg(MappedFile(path).bytes(), path.string()); }

}  // namespace siamese::io
