#include "headrace/pipeline/operations/machinery/image_recoder.h"
#include "headrace/pipeline/decoders/jpeg_writer.h"
#include "headrace/tests/support/oriented.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

std::vector<std::uint8_t> decode_as(std::span<const std::byte> encoded, const ImageSize& size) {
  ImageDecoder decoder;
  EXPECT_EQ(decoder.read_size(encoded), size);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(size.height * size.width * 3));
  decoder.decode(encoded, pixels);
  return pixels;
}

double mean_change(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(int{a[i]} - int{b[i]});
  return sum / static_cast<double>(a.size());
}

// Smooth, so that a JPEG of good quality is near it.
std::vector<std::uint8_t> slope(const ImageSize& size) {
  std::vector<std::uint8_t> pixels;
  for (std::int64_t y = 0; y < size.height; ++y) {
    for (std::int64_t x = 0; x < size.width; ++x) {
      for (std::int64_t c = 0; c < 3; ++c) pixels.push_back(static_cast<std::uint8_t>((x + y) / (c + 1)));
    }
  }
  return pixels;
}

TEST(JpegWriter, WritesWhatDecodesToNearlyTheSame) {
  const ImageSize size{.height = 37, .width = 53};
  const std::vector<std::uint8_t> pixels = slope(size);
  std::vector<std::byte> fine, rough, again;
  write_jpeg(pixels, size, 95, fine);
  write_jpeg(pixels, size, 10, rough);
  write_jpeg(pixels, size, 95, again);
  EXPECT_LT(mean_change(decode_as(fine, size), pixels), 1.5);
  EXPECT_LT(rough.size(), fine.size());
  EXPECT_EQ(fine, again);
}

TEST(JpegWriter, RefusesWhatIsNoJpeg) {
  std::vector<std::byte> encoded;
  const std::vector<std::uint8_t> line(65501 * 3);
  EXPECT_THROW(write_jpeg(line, {.height = 1, .width = 65501}, 90, encoded), Error);
  EXPECT_THROW(write_jpeg(std::span(line).first(3), {.height = 1, .width = 1}, 0, encoded), ConfigError);
  EXPECT_THROW(write_jpeg(std::span(line).first(3), {.height = 1, .width = 2}, 90, encoded), ConfigError);
}

TEST(JpegWriter, WritesTheOrientationAndNothingElseChanges) {
  const ImageSize size{.height = 37, .width = 53};
  const std::vector<std::uint8_t> pixels = slope(size);
  std::vector<std::byte> plain, oriented;
  write_jpeg(pixels, size, 90, plain);
  for (int value = 2; value <= 8; ++value) {
    write_jpeg(pixels, size, 90, oriented, static_cast<Orientation>(value));
    EXPECT_EQ(static_cast<int>(exif_orientation(oriented)), value);
    EXPECT_EQ(decode_as(oriented, size), decode_as(plain, size));
  }
}

TEST(ImageRecoder, KeepsTheOrientation) {
  ImageRecoder recoder({.max_side = 20});
  const Bytes image = jpeg_with_orientation(encode_jpeg(make_picture(40, 50, 3, 1)), Orientation::kRightTop);
  EXPECT_EQ(exif_orientation(recoder.recode(image)), Orientation::kRightTop);
  EXPECT_EQ(exif_orientation(recoder.recode(encode_jpeg(make_picture(40, 50, 3, 1)))), Orientation::kTopLeft);
}

TEST(ImageRecoder, ReducesTheLongerSide) {
  EXPECT_EQ(fit_longer_side({.height = 375, .width = 500}, 256), (ImageSize{192, 256}));
  EXPECT_EQ(fit_longer_side({.height = 500, .width = 333}, 250), (ImageSize{250, 167}));
  EXPECT_EQ(fit_longer_side({.height = 100, .width = 256}, 256), (ImageSize{100, 256}));
  EXPECT_EQ(fit_longer_side({.height = 1, .width = 60000}, 10), (ImageSize{1, 10}));
}

TEST(ImageRecoder, ResizesAntialiased) {
  const ImageSize size{.height = 120, .width = 160}, half{.height = 60, .width = 80};
  std::vector<std::byte> encoded;
  write_jpeg(slope(size), size, 95, encoded);
  ImageRecoder recoder({.max_side = 80, .quality = 95});
  // Half of a slope is a slope twice as steep.
  std::vector<std::uint8_t> expected;
  for (std::int64_t y = 0; y < half.height; ++y) {
    for (std::int64_t x = 0; x < half.width; ++x) {
      for (std::int64_t c = 0; c < 3; ++c)
        expected.push_back(static_cast<std::uint8_t>((2 * x + 2 * y + 1) / (c + 1)));
    }
  }
  EXPECT_LT(mean_change(decode_as(recoder.recode(encoded), half), expected), 2);
}

TEST(ImageRecoder, KeepsTheBytesOfWhatFits) {
  const Bytes png = encode_png(make_picture(9, 14, 3, 1));
  EXPECT_EQ(ImageRecoder({.max_side = 14}).recode(png).data(), png.data());
  EXPECT_EQ(ImageRecoder(RecodeOptions{}).recode(png).data(), png.data());
  ImageRecoder again({.max_side = 14, .quality = 90});
  EXPECT_NE(again.recode(png).data(), png.data());
}

}  // namespace
}  // namespace headrace::test
