#include "headrace/pipeline/operations/kernels/canvas.h"

#include <algorithm>
#include <cstring>

#include "headrace/devices/base/sizes.h"

namespace headrace {
namespace {

// A row of a CIFAR image is 96 bytes: not worth a call to memcpy.
[[gnu::always_inline]] inline void copy_row(std::byte* to, const std::byte* from, std::int64_t bytes) {
  struct Chunk {
    std::uint64_t words[4];
  };
  std::int64_t i = 0;
  for (; i + 32 <= bytes; i += 32) {
    Chunk chunk;
    std::memcpy(&chunk, from + i, sizeof chunk);
    std::memcpy(to + i, &chunk, sizeof chunk);
  }
  if (i < bytes) std::memcpy(to + i, from + i, static_cast<std::size_t>(bytes - i));
}

void clear_for(Canvas& canvas, const CanvasImage& image, std::int64_t pad) {
  if (canvas.height == image.height && canvas.width == image.width && canvas.pixel_bytes == image.pixel_bytes &&
      canvas.pad == pad) {
    return;
  }
  canvas.height = image.height;
  canvas.width = image.width;
  canvas.pixel_bytes = image.pixel_bytes;
  canvas.pad = pad;
  canvas.bytes.assign(canvas_bytes(image, pad), std::byte{0});
}

void draw_reflected(Canvas& canvas, const CanvasImage& image, std::int64_t pad, std::int64_t top,
                    std::int64_t rows) {
  const std::int64_t pixel = image.pixel_bytes;
  const auto one = static_cast<std::size_t>(pixel);
  const std::int64_t stride = (image.width + 2 * pad) * pixel;
  for (std::int64_t y = top; y < top + rows; ++y) {
    const std::byte* from = image.data + reflected(y - pad, image.height) * image.width * pixel;
    std::byte* to = canvas.bytes.data() + y * stride;
    copy_row(to + pad * pixel, from, image.width * pixel);
    for (std::int64_t x = 0; x < pad; ++x) {
      std::memcpy(to + x * pixel, from + reflected(x - pad, image.width) * pixel, one);
      const std::int64_t right = image.width + x;
      std::memcpy(to + (pad + right) * pixel, from + reflected(right, image.width) * pixel, one);
    }
  }
}

}  // namespace

std::size_t canvas_bytes(const CanvasImage& image, std::int64_t pad) noexcept {
  return static_cast<std::size_t>((image.height + 2 * pad) * (image.width + 2 * pad) * image.pixel_bytes);
}

void draw_on_canvas(Canvas& canvas, const CanvasImage& image, const ImageBorder& border, std::int64_t top,
                    std::int64_t rows) {
  const std::int64_t pad = border.pixels;
  if (border.padding == Padding::kReflect) {
    canvas.height = 0;  // the zero border is gone
    const std::int64_t bytes = (image.height + 2 * pad) * (image.width + 2 * pad) * image.pixel_bytes;
    canvas.bytes.resize(std::max(canvas.bytes.size(), static_cast<std::size_t>(bytes)));
    draw_reflected(canvas, image, pad, top, rows);
    return;
  }
  clear_for(canvas, image, pad);
  const std::int64_t row = image.width * image.pixel_bytes;
  const std::int64_t stride = row + 2 * pad * image.pixel_bytes;
  const std::int64_t last = std::min(top + rows, pad + image.height);
  for (std::int64_t y = std::max(top, pad); y < last; ++y) {
    copy_row(canvas.bytes.data() + y * stride + pad * image.pixel_bytes, image.data + (y - pad) * row, row);
  }
}

}  // namespace headrace
