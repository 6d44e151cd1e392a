#include "headrace/pipeline/decoders/jpeg_writer.h"

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <jpeglib.h>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/decoders/image_size.h"

namespace headrace {
namespace {

// One image from pixels to a file in memory. libjpeg reports errors by longjmp: run() sets the jump target and has
// no C++ object for the jump to skip.
class Compressor {
 public:
  Compressor() noexcept {
    info_.err = jpeg_std_error(&errors_);
    info_.client_data = this;
    errors_.error_exit = on_error;
    errors_.output_message = ignore;
  }
  ~Compressor() {
    jpeg_destroy_compress(&info_);
    std::free(file_);  // libjpeg's own malloc
  }
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;

  bool run(const std::uint8_t* rgb, JDIMENSION height, JDIMENSION width, int quality,
           std::span<const std::uint8_t> exif) noexcept {
    if (setjmp(jump_) != 0) return false;
    jpeg_create_compress(&info_);
    jpeg_mem_dest(&info_, &file_, &bytes_);
    info_.image_height = height;
    info_.image_width = width;
    info_.input_components = 3;
    info_.in_color_space = JCS_RGB;
    jpeg_set_defaults(&info_);
    jpeg_set_quality(&info_, quality, TRUE);
    info_.dct_method = JDCT_ISLOW;
    info_.optimize_coding = TRUE;
    jpeg_start_compress(&info_, TRUE);
    if (!exif.empty()) jpeg_write_marker(&info_, JPEG_APP0 + 1, exif.data(), static_cast<unsigned>(exif.size()));
    while (info_.next_scanline < height) {
      // libjpeg takes a pointer to mutable rows and does not write to them.
      JSAMPROW row = const_cast<std::uint8_t*>(rgb) + std::size_t{info_.next_scanline} * width * 3;
      jpeg_write_scanlines(&info_, &row, 1);
    }
    jpeg_finish_compress(&info_);
    return true;
  }

  std::span<const std::byte> file() const noexcept { return {reinterpret_cast<const std::byte*>(file_), bytes_}; }
  const char* words() const noexcept { return words_; }

 private:
  [[noreturn]] static void on_error(j_common_ptr info) {
    Compressor& compressor = *static_cast<Compressor*>(info->client_data);
    info->err->format_message(info, compressor.words_);
    std::longjmp(compressor.jump_, 1);
  }
  static void ignore(j_common_ptr /*info*/) {}

  jpeg_compress_struct info_{};
  jpeg_error_mgr errors_{};
  unsigned char* file_ = nullptr;
  unsigned long bytes_ = 0;
  std::jmp_buf jump_;
  char words_[JMSG_LENGTH_MAX] = {};
};

// Returns EXIF data with nothing else: the segment's name, a TIFF header, a directory of one entry (tag 0x0112,
// one number of 16 bits) and no other directory.
std::array<std::uint8_t, 32> exif_of(Orientation orientation) {
  constexpr std::size_t kValue = 25;
  constexpr std::string_view kExif("Exif\0\0MM\0\x2A\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\0\0\0\0\0\0\0", 32);
  std::array<std::uint8_t, 32> exif{};
  std::ranges::copy(kExif, exif.begin());
  exif[kValue] = static_cast<std::uint8_t>(orientation);
  return exif;
}

}  // namespace

void write_jpeg(std::span<const std::uint8_t> rgb, const ImageSize& size, int quality,
                std::vector<std::byte>& encoded, Orientation orientation) {
  check_window(size, {.height = size.height, .width = size.width}, rgb.size());
  if (quality < 1 || quality > 100) {
    throw ConfigError("a JPEG quality of " + std::to_string(quality), "the quality is 1 to 100");
  }
  Compressor compressor;
  const auto exif = exif_of(orientation);
  const bool oriented = orientation != Orientation::kTopLeft;
  if (!compressor.run(rgb.data(), static_cast<JDIMENSION>(size.height), static_cast<JDIMENSION>(size.width),
                      quality, std::span(exif).first(oriented ? exif.size() : 0))) {
    throw Error(ErrorCode::kUnsupported, std::string("cannot write a JPEG: ") + compressor.words());
  }
  encoded.assign(compressor.file().begin(), compressor.file().end());
}

}  // namespace headrace
