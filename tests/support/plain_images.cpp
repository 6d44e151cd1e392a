#include <jpeglib.h>
#include <png.h>
#include <csetjmp>

#include "headrace/tests/support/plain_images.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

// libjpeg reports errors by a jump: read() has no C++ object for it to pass over.
class PlainReader {
 public:
  PlainReader() noexcept {
    info_.err = jpeg_std_error(&errors_);
    info_.client_data = this;
    errors_.error_exit = [](j_common_ptr info) {
      std::longjmp(static_cast<PlainReader*>(info->client_data)->jump_, 1);
    };
    errors_.emit_message = [](j_common_ptr info, int level) {
      if (level < 0) ++info->err->num_warnings;
    };
    jpeg_create_decompress(&info_);
  }
  ~PlainReader() { jpeg_destroy_decompress(&info_); }
  PlainReader(const PlainReader&) = delete;
  PlainReader& operator=(const PlainReader&) = delete;

  bool read(std::span<const std::byte> jpeg, Picture& to) {
    if (setjmp(jump_) != 0) return false;
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size());
    jpeg_read_header(&info_, TRUE);
    info_.out_color_space = JCS_RGB;
    jpeg_start_decompress(&info_);
    to.height = static_cast<int>(info_.output_height);
    to.width = static_cast<int>(info_.output_width);
    to.channels = 3;
    to.samples.resize(static_cast<std::size_t>(to.height) * static_cast<std::size_t>(to.width) * 3);
    while (info_.output_scanline < info_.output_height) {
      JSAMPROW row = to.samples.data() + std::size_t{info_.output_scanline} * info_.output_width * 3;
      jpeg_read_scanlines(&info_, &row, 1);
    }
    jpeg_finish_decompress(&info_);
    return true;
  }
  bool warned() const { return errors_.num_warnings > 0; }

 private:
  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
  std::jmp_buf jump_;
};

}  // namespace

std::optional<PlainJpeg> decode_plainly(std::span<const std::byte> jpeg) {
  PlainReader reader;
  PlainJpeg read;
  if (!reader.read(jpeg, read.picture)) return std::nullopt;
  read.warned = reader.warned();
  return read;
}

namespace {

void append_to(png_structp png, png_bytep bytes, std::size_t count) {
  auto* out = static_cast<Bytes*>(png_get_io_ptr(png));
  const auto* from = reinterpret_cast<const std::byte*>(bytes);
  out->insert(out->end(), from, from + count);
}

}  // namespace

Bytes encode_blank_png(int height, int width, const PngOptions& options) {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  Bytes encoded;
  png_set_write_fn(png, &encoded, append_to, nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), 8, PNG_COLOR_TYPE_RGB,
               options.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_set_compression_level(png, 1);
  png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_NONE);
  png_write_info(png, info);
  const std::vector<png_byte> row(static_cast<std::size_t>(width) * 3);
  const int passes = png_set_interlace_handling(png);
  for (int i = 0; i < passes * height; ++i) png_write_row(png, row.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return encoded;
}

}  // namespace headrace::test
