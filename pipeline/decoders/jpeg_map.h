// Where in a JPEG's bits its units lie: what it takes to reach a part of the image without decoding what is
// before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/pipeline/decoders/image_size.h"
#include "headrace/pipeline/decoders/jpeg_levels.h"

namespace headrace {

// Immutable. Of some 3 % of the file's size. A file that has one is whole: all its bits make an image.
class JpegMap {
 public:
  // A row of units is divided into stretches; this is where one begins, or where the last one ends.
  struct Place {
    std::uint32_t bit = 0;  // of the row's unstuffed bits
    JpegLevels levels{};    // before it
  };

  const ImageSize& size() const noexcept { return size_; }
  // Of the bytes it was made of.
  std::uint64_t content() const noexcept { return content_; }
  static std::uint64_t content_of(std::span<const std::byte> encoded) noexcept;

  std::int64_t stretch() const noexcept { return stretch_; }  // units
  // The row's entropy-coded bytes among those of the file, and some more; its first bit is in the first of them.
  std::span<const std::byte> row(std::span<const std::byte> encoded, std::int64_t row) const noexcept;
  // Of the row's `stretch`th; where a row has n, place(row, n) is its end.
  Place place(std::int64_t row, std::int64_t stretch) const noexcept;
  std::int64_t stretches() const noexcept { return stretches_; }

  std::uint64_t bytes() const noexcept;

 private:
  friend class JpegMapper;

  ImageSize size_;
  std::uint64_t content_ = 0;
  std::int64_t stretch_ = 0, stretches_ = 0, components_ = 0;
  std::vector<std::uint32_t> rows_;   // first byte of each row, and the last one's last
  std::vector<std::uint32_t> bits_;   // of places, stretches + 1 a row
  std::vector<std::int16_t> levels_;  // of places
};

}  // namespace headrace
