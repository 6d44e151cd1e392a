#include "headrace/pipeline/operations/kernels/moved_pixels.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace headrace {
namespace {

constexpr std::int64_t kBeyond = -1;

// Returns the pixel of an axis that is shown; kBeyond: none.
std::int64_t shown(std::int64_t at, std::int64_t extent, bool reflects) {
  if (at >= 0 && at < extent) return at;
  if (!reflects) return kBeyond;
  return at < 0 ? -at : 2 * (extent - 1) - at;
}

template <typename Pixel>
void move_row(const std::byte* from, const std::vector<std::int64_t>& columns, std::byte* to) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    Pixel pixel{};
    if (columns[i] != kBeyond) std::memcpy(&pixel, from + columns[i] * std::int64_t{sizeof pixel}, sizeof pixel);
    std::memcpy(to + i * sizeof pixel, &pixel, sizeof pixel);
  }
}

void move_wide_row(const std::byte* from, const std::vector<std::int64_t>& columns, std::size_t bytes,
                   std::byte* to) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::byte* const pixel = to + i * bytes;
    if (columns[i] == kBeyond) {
      std::fill_n(pixel, bytes, std::byte{0});
    } else {
      std::memcpy(pixel, from + static_cast<std::size_t>(columns[i]) * bytes, bytes);
    }
  }
}

template <typename Number>
Box load_four(const std::byte* from) {
  Number numbers[4];
  std::memcpy(numbers, from, sizeof numbers);
  return {.left = static_cast<double>(numbers[0]),
          .top = static_cast<double>(numbers[1]),
          .right = static_cast<double>(numbers[2]),
          .bottom = static_cast<double>(numbers[3])};
}

}  // namespace

void move_pixels(const MovedPixels& work) {
  static thread_local std::vector<std::int64_t> columns;
  columns.resize(static_cast<std::size_t>(work.size.width));
  for (std::int64_t x = 0; x < work.size.width; ++x) {
    const std::int64_t seen = work.mirrored ? work.size.width - 1 - x : x;
    const std::int64_t at = work.window.left + seen * work.window.width / work.size.width;
    columns[static_cast<std::size_t>(x)] = shown(at, work.width, work.reflects);
  }
  const std::size_t row_bytes = static_cast<std::size_t>(work.size.width) * work.pixel_bytes;
  std::byte* to = work.to;
  for (std::int64_t y = 0; y < work.size.height; ++y, to += row_bytes) {
    const std::int64_t at = work.window.top + y * work.window.height / work.size.height;
    const std::int64_t row = shown(at, work.height, work.reflects);
    if (row == kBeyond) {
      std::fill_n(to, row_bytes, std::byte{0});
      continue;
    }
    const std::byte* from = work.from + static_cast<std::size_t>(row * work.width) * work.pixel_bytes;
    switch (work.pixel_bytes) {
      case 1: move_row<std::uint8_t>(from, columns, to); break;
      case 4: move_row<std::uint32_t>(from, columns, to); break;
      case 8: move_row<std::uint64_t>(from, columns, to); break;
      default: move_wide_row(from, columns, work.pixel_bytes, to);
    }
  }
}

Box load_box(std::span<const std::byte> boxes, std::size_t index, DType type) {
  const std::byte* from = boxes.data() + index * 4 * size_of(type);
  if (type == DType::kI64) return load_four<std::int64_t>(from);
  return type == DType::kI32 ? load_four<std::int32_t>(from) : load_four<float>(from);
}

void store_box(const Box& box, std::span<std::byte> boxes, std::size_t index) {
  const float numbers[4] = {static_cast<float>(box.left), static_cast<float>(box.top),
                            static_cast<float>(box.right), static_cast<float>(box.bottom)};
  std::memcpy(boxes.data() + index * sizeof numbers, numbers, sizeof numbers);
}

}  // namespace headrace
