#include "headrace/pipeline/decoders/exif_orientation.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

namespace headrace {
namespace {

// Reads numbers of either byte order from bytes of any length; std::nullopt beyond their end.
class Numbers {
 public:
  Numbers(std::span<const std::byte> bytes, bool little_endian) : bytes_(bytes), little_endian_(little_endian) {}

  std::optional<std::size_t> read(std::size_t at, std::size_t width) const noexcept {
    if (at > bytes_.size() || bytes_.size() - at < width) return std::nullopt;
    std::size_t value = 0;
    for (std::size_t i = 0; i < width; ++i) {
      const std::size_t place = little_endian_ ? at + width - 1 - i : at + i;
      value = value << 8 | std::to_integer<std::size_t>(bytes_[place]);
    }
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  bool little_endian_;
};

bool begins_with(std::span<const std::byte> bytes, std::string_view text) noexcept {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

// Returns the value of the TIFF directory entry at `at`: one number of 8, 16 or 32 bits.
std::optional<std::size_t> entry_value(const Numbers& numbers, std::size_t at) noexcept {
  constexpr std::size_t kByte = 1, kShort = 3, kLong = 4;
  const auto type = numbers.read(at + 2, 2), count = numbers.read(at + 4, 4);
  if (!type || !count || *count != 1) return std::nullopt;
  if (*type != kByte && *type != kShort && *type != kLong) return std::nullopt;
  return numbers.read(at + 8, *type == kByte ? 1 : *type == kShort ? 2 : 4);
}

// Returns the orientation in the first directory of a TIFF file, the form of EXIF data.
Orientation orientation_of_tiff(std::span<const std::byte> tiff) noexcept {
  constexpr std::size_t kOrientation = 0x0112, kEntryBytes = 12;
  const bool little_endian = begins_with(tiff, "II");
  if (!little_endian && !begins_with(tiff, "MM")) return Orientation::kTopLeft;
  const Numbers numbers(tiff, little_endian);
  const auto directory = numbers.read(4, 4);
  const auto entries = directory ? numbers.read(*directory, 2) : std::nullopt;
  for (std::size_t i = 0; entries && i < *entries; ++i) {
    const std::size_t at = *directory + 2 + i * kEntryBytes;
    const auto tag = numbers.read(at, 2);
    if (!tag) break;
    if (*tag != kOrientation) continue;
    const auto value = entry_value(numbers, at);
    return value && *value >= 1 && *value <= 8 ? static_cast<Orientation>(*value) : Orientation::kTopLeft;
  }
  return Orientation::kTopLeft;
}

// Reads segment after segment up to the first scan; skips bytes between them, as libjpeg does.
Orientation orientation_of_jpeg(std::span<const std::byte> jpeg) noexcept {
  constexpr std::string_view kExif("Exif\0\0", 6);
  constexpr std::size_t kApp1 = 0xE1, kScan = 0xDA, kEnd = 0xD9;
  const Numbers numbers(jpeg, false);
  for (std::size_t at = 2; at + 4 <= jpeg.size();) {
    const std::size_t marker = *numbers.read(at + 1, 1);
    if (jpeg[at] != std::byte{0xFF} || marker == 0 || marker == 0xFF) {
      ++at;
      continue;
    }
    const std::size_t length = *numbers.read(at + 2, 2);
    if (marker == kScan || marker == kEnd || length < 2 || length > jpeg.size() - at - 2) break;
    const std::span<const std::byte> data = jpeg.subspan(at + 4, length - 2);
    if (marker == kApp1 && begins_with(data, kExif)) return orientation_of_tiff(data.subspan(kExif.size()));
    at += 2 + length;
  }
  return Orientation::kTopLeft;
}

Orientation orientation_of_png(std::span<const std::byte> png) noexcept {
  constexpr std::size_t kSignature = 8, kHeader = 8, kCrc = 4;
  const Numbers numbers(png, false);
  for (std::size_t at = kSignature; at + kHeader <= png.size();) {
    const std::size_t length = *numbers.read(at, 4);
    const std::span<const std::byte> type = png.subspan(at + 4);
    if (length > png.size() - at - kHeader || begins_with(type, "IEND")) break;
    if (begins_with(type, "eXIf")) return orientation_of_tiff(png.subspan(at + kHeader, length));
    at += kHeader + length + kCrc;
  }
  return Orientation::kTopLeft;
}

bool swaps_sides(Orientation orientation) noexcept { return orientation >= Orientation::kLeftTop; }

// Returns whether the first stored row, or column, is shown last.
bool reverses_rows(Orientation orientation) noexcept {
  return orientation == Orientation::kBottomRight || orientation == Orientation::kBottomLeft ||
         orientation == Orientation::kRightTop || orientation == Orientation::kRightBottom;
}
bool reverses_columns(Orientation orientation) noexcept {
  return orientation == Orientation::kTopRight || orientation == Orientation::kBottomRight ||
         orientation == Orientation::kRightBottom || orientation == Orientation::kLeftBottom;
}

}  // namespace

Orientation exif_orientation(std::span<const std::byte> encoded) noexcept {
  if (begins_with(encoded, "\xFF\xD8\xFF")) return orientation_of_jpeg(encoded);
  if (begins_with(encoded, "\x89PNG\r\n\x1A\n")) return orientation_of_png(encoded);
  return Orientation::kTopLeft;
}

ImageSize shown_size(const ImageSize& stored, Orientation orientation) noexcept {
  return swaps_sides(orientation) ? ImageSize{.height = stored.width, .width = stored.height} : stored;
}

ImageWindow stored_window(const ImageWindow& shown, const ImageSize& stored, Orientation orientation) noexcept {
  ImageWindow window = shown;
  if (swaps_sides(orientation)) {
    std::swap(window.top, window.left);
    std::swap(window.height, window.width);
  }
  if (reverses_rows(orientation)) window.top = stored.height - window.top - window.height;
  if (reverses_columns(orientation)) window.left = stored.width - window.left - window.width;
  return window;
}

void turn_pixels(std::span<const std::uint8_t> pixels, const ImageSize& stored, Orientation orientation,
                 std::span<std::uint8_t> shown) noexcept {
  // Distances in stored pixels from one row, or column, to the next as shown, and the pixel shown first.
  const std::int64_t down = reverses_rows(orientation) ? -stored.width : stored.width;
  const std::int64_t right = reverses_columns(orientation) ? -1 : 1;
  const std::int64_t first =
      (down < 0 ? (stored.height - 1) * stored.width : 0) + (right < 0 ? stored.width - 1 : 0);
  const bool swaps = swaps_sides(orientation);
  const std::int64_t next_row = swaps ? right : down, next_column = swaps ? down : right;
  const ImageSize size = shown_size(stored, orientation);
  std::uint8_t* out = shown.data();
  for (std::int64_t row = 0; row < size.height; ++row) {
    const std::uint8_t* from = pixels.data() + (first + row * next_row) * 3;
    for (std::int64_t column = 0; column < size.width; ++column, from += next_column * 3, out += 3) {
      std::copy_n(from, 3, out);
    }
  }
}

}  // namespace headrace
