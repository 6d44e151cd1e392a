#include "headrace/pipeline/decoders/png_reader.h"

#include <algorithm>
#include <cstring>

#include "headrace/devices/base/check.h"
#include "headrace/pipeline/decoders/decode_request.h"
#include "headrace/pipeline/decoders/png_handle.h"

namespace headrace {
namespace {

void require_png(bool done, const PngHandle& png) {
  if (!done) throw Error(ErrorCode::kDataCorrupt, std::string("bad PNG: ") + png.words());
}

ImageSize open_png(PngHandle& png) {
  require_png(png.read_header(), png);
  const ImageSize size{.height = png.height(), .width = png.width()};
  check_pixels(size.height, size.width);
  return size;
}

void start(PngHandle& png) {
  require_png(png.start(), png);
  HEADRACE_CHECK(png.row_bytes() == std::size_t{png.width()} * 3, "libpng gives other rows than 8-bit RGB");
}

// All rows, as often as the image has passes.
void read_rows(PngHandle& png, std::uint8_t* out) {
  for (int pass = 0; pass < png.passes(); ++pass) {
    for (std::size_t row = 0; row < png.height(); ++row)
      require_png(png.read_row(out + row * png.row_bytes()), png);
  }
}

}  // namespace

ImageSize PngReader::read_size(std::span<const std::byte> encoded) {
  PngHandle png(encoded);
  const ImageSize size = open_png(png);
  window_bytes_ = png.is_interlaced() ? static_cast<std::size_t>(size.height * size.width * 3) : 0;
  return size;
}

void PngReader::decode(std::span<const std::byte> encoded, std::span<std::uint8_t> rgb) {
  PngHandle png(encoded);
  const ImageSize size = open_png(png);
  check_window(size, {.height = size.height, .width = size.width}, rgb.size());
  start(png);
  read_rows(png, rgb.data());
  require_png(png.finish(), png);
  warning_ = png.warning();
}

void PngReader::decode_window(std::span<const std::byte> encoded, const ImageWindow& window,
                              std::span<std::uint8_t> rgb) {
  PngHandle png(encoded);
  check_window(open_png(png), window, rgb.size());
  start(png);
  const std::size_t row_bytes = png.row_bytes(), left = static_cast<std::size_t>(window.left) * 3;
  const auto top = static_cast<std::size_t>(window.top), height = static_cast<std::size_t>(window.height);
  const std::size_t wanted = static_cast<std::size_t>(window.width) * 3;
  // The passes of an interlaced image need all of it side by side.
  std::vector<std::uint8_t> whole(png.is_interlaced() ? row_bytes * png.height() : 0);
  if (!whole.empty()) read_rows(png, whole.data());
  if (whole.empty()) row_.resize(std::max(row_.size(), row_bytes));
  for (std::size_t row = 0; row < png.height(); ++row) {
    if (whole.empty()) require_png(png.read_row(row_.data()), png);
    if (row < top || row >= top + height) continue;
    const std::uint8_t* line = whole.empty() ? row_.data() : whole.data() + row * row_bytes;
    std::memcpy(rgb.data() + (row - top) * wanted, line + left, wanted);
  }
  require_png(png.finish(), png);
  warning_ = png.warning();
}

std::string PngReader::identity() { return std::string("libpng ") + png_get_libpng_ver(nullptr); }

}  // namespace headrace
