#include "headrace/tests/support/blank_png.h"

#include <png.h>

#include <vector>

namespace headrace::test {
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
