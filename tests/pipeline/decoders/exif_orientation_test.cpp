#include "headrace/pipeline/decoders/exif_orientation.h"
#include "headrace/tests/support/oriented.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

constexpr Orientation kAll[] = {Orientation::kTopLeft,     Orientation::kTopRight,  Orientation::kBottomRight,
                                Orientation::kBottomLeft,  Orientation::kLeftTop,   Orientation::kRightTop,
                                Orientation::kRightBottom, Orientation::kLeftBottom};

TEST(ExifOrientation, IsReadFromJpegsAndPngsOfEitherByteOrder) {
  const Picture picture = make_picture(8, 9, 3, 1);
  for (const Orientation orientation : kAll) {
    for (const bool little_endian : {false, true}) {
      EXPECT_EQ(exif_orientation(jpeg_with_orientation(encode_jpeg(picture), orientation, little_endian)),
                orientation);
      EXPECT_EQ(exif_orientation(png_with_orientation(encode_png(picture), orientation, little_endian)),
                orientation);
    }
  }
}

TEST(ExifOrientation, IsTopLeftWhereNothingSaysOtherwise) {
  const Bytes jpeg = encode_jpeg(make_picture(8, 9, 3, 1)), png = encode_png(make_picture(8, 9, 3, 1));
  EXPECT_EQ(exif_orientation({}), Orientation::kTopLeft);
  EXPECT_EQ(exif_orientation(to_bytes("GIF89a")), Orientation::kTopLeft);
  EXPECT_EQ(exif_orientation(jpeg), Orientation::kTopLeft);
  EXPECT_EQ(exif_orientation(png), Orientation::kTopLeft);
  for (const int value : {0, 9, 255}) {
    EXPECT_EQ(exif_orientation(jpeg_with_orientation(jpeg, static_cast<Orientation>(value), true)),
              Orientation::kTopLeft);
  }
}

TEST(ExifOrientation, NoCutNorFlippedBitOfAFileDoesHarm) {
  const Bytes oriented =
      jpeg_with_orientation(encode_jpeg(make_picture(8, 9, 3, 1)), Orientation::kRightTop, false);
  for (std::size_t size = 0; size < oriented.size(); ++size) {
    const Bytes cut(oriented.begin(), oriented.begin() + static_cast<std::ptrdiff_t>(size));
    const Orientation found = exif_orientation(cut);
    EXPECT_TRUE(found == Orientation::kTopLeft || found == Orientation::kRightTop);
  }
  for (std::size_t bit = 0; bit < 60 * 8; ++bit) {
    Bytes flipped = oriented;
    flipped[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    const auto found = static_cast<int>(exif_orientation(flipped));
    EXPECT_GE(found, 1);
    EXPECT_LE(found, 8);
  }
}

// A picture of 2 x 3 pixels named by letters, as a viewer shows it.
std::string shown_as(Orientation orientation) {
  const std::string stored = "abcdef";
  std::vector<std::uint8_t> pixels, shown(stored.size() * 3);
  for (const char letter : stored) pixels.insert(pixels.end(), 3, static_cast<std::uint8_t>(letter));
  turn_pixels(pixels, {.height = 2, .width = 3}, orientation, shown);
  const ImageSize size = shown_size({.height = 2, .width = 3}, orientation);
  std::string text;
  for (std::int64_t i = 0; i < 6; ++i) {
    if (i > 0 && i % size.width == 0) text += '/';
    text += static_cast<char>(shown[static_cast<std::size_t>(i) * 3]);
  }
  return text;
}

TEST(ExifOrientation, TurnsPixelsAsTheStandardShows) {
  EXPECT_EQ(shown_as(Orientation::kTopLeft), "abc/def");
  EXPECT_EQ(shown_as(Orientation::kTopRight), "cba/fed");
  EXPECT_EQ(shown_as(Orientation::kBottomRight), "fed/cba");
  EXPECT_EQ(shown_as(Orientation::kBottomLeft), "def/abc");
  EXPECT_EQ(shown_as(Orientation::kLeftTop), "ad/be/cf");
  EXPECT_EQ(shown_as(Orientation::kRightTop), "da/eb/fc");
  EXPECT_EQ(shown_as(Orientation::kRightBottom), "fc/eb/da");
  EXPECT_EQ(shown_as(Orientation::kLeftBottom), "cf/be/ad");
}

TEST(ExifOrientation, AWindowIsTurnedAsTheWholeImageIs) {
  const ImageSize stored{.height = 7, .width = 10};
  const Picture picture = make_picture(7, 10, 3, 4);
  for (const Orientation orientation : kAll) {
    std::vector<std::uint8_t> whole(picture.samples.size());
    turn_pixels(picture.samples, stored, orientation, whole);
    const ImageSize shown = shown_size(stored, orientation);
    const ImageWindow window{.top = 1, .left = 3, .height = 4, .width = 2};
    const ImageWindow from = stored_window(window, stored, orientation);
    std::vector<std::uint8_t> part, turned(4 * 2 * 3);
    for (std::int64_t row = from.top; row < from.top + from.height; ++row) {
      const auto first = picture.samples.begin() + (row * stored.width + from.left) * 3;
      part.insert(part.end(), first, first + from.width * 3);
    }
    turn_pixels(part, {.height = from.height, .width = from.width}, orientation, turned);
    for (std::int64_t row = 0; row < window.height; ++row) {
      const auto first = whole.begin() + ((window.top + row) * shown.width + window.left) * 3;
      EXPECT_TRUE(std::equal(first, first + window.width * 3, turned.begin() + row * window.width * 3))
          << static_cast<int>(orientation);
    }
  }
}

}  // namespace
}  // namespace headrace::test
