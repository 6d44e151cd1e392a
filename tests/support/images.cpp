#include <jpeglib.h>
#include <png.h>

#include "headrace/tests/support/images.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

std::uint8_t sample_at(int row, int column, int channel, std::uint32_t noise) {
  const int gradient = row * (3 + channel) + column * (5 - channel);
  const int edge = (row / 7 + column / 5) % 2 == 0 ? 0 : 90;
  return static_cast<std::uint8_t>((gradient / 2 + edge + static_cast<int>(noise % 24)) % 256);
}

J_COLOR_SPACE color_space(int channels) {
  return channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
}

int png_color_type(int channels) {
  switch (channels) {
    case 1: return PNG_COLOR_TYPE_GRAY;
    case 2: return PNG_COLOR_TYPE_GRAY_ALPHA;
    case 3: return PNG_COLOR_TYPE_RGB;
    default: return PNG_COLOR_TYPE_RGB_ALPHA;
  }
}

void append(png_structp png, png_bytep bytes, std::size_t count) {
  auto* out = static_cast<Bytes*>(png_get_io_ptr(png));
  const auto* from = reinterpret_cast<const std::byte*>(bytes);
  out->insert(out->end(), from, from + count);
}

struct PngWriter {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);

  ~PngWriter() { png_destroy_write_struct(&png, &info); }

  void write_rows(std::vector<std::uint8_t>& rows, std::size_t row_bytes, int height) const {
    std::vector<png_bytep> pointers;
    for (int row = 0; row < height; ++row)
      pointers.push_back(rows.data() + static_cast<std::size_t>(row) * row_bytes);
    png_write_info(png, info);
    png_write_image(png, pointers.data());
    png_write_end(png, info);
  }
};

}  // namespace

Picture make_picture(int height, int width, int channels, std::uint64_t seed) {
  Picture picture{.height = height, .width = width, .channels = channels, .samples = {}};
  std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
  const int shift = static_cast<int>(random() % 97);
  for (int row = 0; row < height; ++row) {
    for (int column = 0; column < width; ++column) {
      for (int channel = 0; channel < channels; ++channel) {
        picture.samples.push_back(sample_at(row + shift, column, channel, static_cast<std::uint32_t>(random())));
      }
    }
  }
  return picture;
}

Bytes encode_jpeg(const Picture& picture, const JpegOptions& options) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &memory, &size);
  jpeg.image_width = static_cast<JDIMENSION>(picture.width);
  jpeg.image_height = static_cast<JDIMENSION>(picture.height);
  jpeg.input_components = picture.channels;
  jpeg.in_color_space = color_space(picture.channels);
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, options.quality, TRUE);
  if (picture.channels == 3) {
    jpeg.comp_info[0].h_samp_factor = options.horizontal;
    jpeg.comp_info[0].v_samp_factor = options.vertical;
  }
  jpeg.restart_in_rows = options.restart_rows;
  jpeg.optimize_coding = options.standard_tables ? FALSE : TRUE;
  if (options.progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  std::vector<std::uint8_t> line(static_cast<std::size_t>(picture.width * picture.channels));
  for (int row = 0; row < picture.height; ++row) {
    std::memcpy(line.data(), picture.samples.data() + static_cast<std::size_t>(row) * line.size(), line.size());
    JSAMPROW pointer = line.data();
    jpeg_write_scanlines(&jpeg, &pointer, 1);
  }
  jpeg_finish_compress(&jpeg);
  const auto* bytes = reinterpret_cast<const std::byte*>(memory);
  Bytes encoded(bytes, bytes + size);
  jpeg_destroy_compress(&jpeg);
  std::free(memory);
  return encoded;
}

Bytes encode_png(const Picture& picture, const PngOptions& options) {
  std::vector<std::uint8_t> rows;
  for (const std::uint8_t sample : picture.samples) {
    rows.push_back(sample);
    if (options.bits == 16) rows.push_back(sample);
  }
  PngWriter writer;
  Bytes encoded;
  png_set_write_fn(writer.png, &encoded, append, nullptr);
  png_set_IHDR(writer.png, writer.info, static_cast<png_uint_32>(picture.width),
               static_cast<png_uint_32>(picture.height), options.bits, png_color_type(picture.channels),
               options.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  writer.write_rows(rows, rows.size() / static_cast<std::size_t>(picture.height), picture.height);
  return encoded;
}

Bytes encode_palette_png(const Picture& picture, Picture& shown) {
  shown = picture;
  std::vector<png_color> palette;
  for (int i = 0; i < 256; ++i) {
    palette.push_back({.red = static_cast<png_byte>((i >> 5) * 36),
                       .green = static_cast<png_byte>((i >> 2 & 7) * 36),
                       .blue = static_cast<png_byte>((i & 3) * 85)});
  }
  std::vector<std::uint8_t> rows;
  for (std::size_t i = 0; i < picture.samples.size(); i += 3) {
    const int index =
        (picture.samples[i] >> 5) << 5 | (picture.samples[i + 1] >> 5) << 2 | picture.samples[i + 2] >> 6;
    rows.push_back(static_cast<std::uint8_t>(index));
    const png_color& color = palette[static_cast<std::size_t>(index)];
    shown.samples[i] = color.red;
    shown.samples[i + 1] = color.green;
    shown.samples[i + 2] = color.blue;
  }
  PngWriter writer;
  Bytes encoded;
  png_set_write_fn(writer.png, &encoded, append, nullptr);
  png_set_IHDR(writer.png, writer.info, static_cast<png_uint_32>(picture.width),
               static_cast<png_uint_32>(picture.height), 8, PNG_COLOR_TYPE_PALETTE, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_set_PLTE(writer.png, writer.info, palette.data(), static_cast<int>(palette.size()));
  writer.write_rows(rows, static_cast<std::size_t>(picture.width), picture.height);
  return encoded;
}

}  // namespace headrace::test
