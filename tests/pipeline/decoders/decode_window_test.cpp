#include "headrace/pipeline/sources.h"
#include "headrace/tests/support/data.h"
#include "headrace/tests/support/device_windows.h"
#include "headrace/tests/support/image_windows.h"
#include "headrace/tests/support/long_run.h"
#include "headrace/tests/support/plain_images.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

using WindowPixels = std::vector<std::uint8_t>;

// decode_window() against decode() and a crop, and decode() against libjpeg.
class WindowChecker {
 public:
  explicit WindowChecker(std::span<const std::byte> encoded)
      : encoded_(encoded), size_(decoder_.read_size(encoded)) {
    whole_.resize(static_cast<std::size_t>(size_.height * size_.width) * 3);
    decoder_.decode(encoded, whole_);
    index_ = index_of(decoder_, encoded);
    if (const auto plain = decode_plainly(encoded)) {
      EXPECT_EQ(plain->picture.samples, whole_);
    }
  }

  const ImageSize& size() const { return size_; }
  bool has_index() const { return index_ != nullptr; }
  // Whether a device decodes its windows.
  bool on_device() const { return on_device_; }

  // With the image's index, where it has one, and without; and by a device.
  bool equal(const ImageWindow& window) {
    const auto row_bytes = static_cast<std::size_t>(window.width) * 3;
    WindowPixels pixels(static_cast<std::size_t>(window.height) * row_bytes, 0xA5);
    decoder_.decode_window(encoded_, window, pixels);
    if (!is_crop(pixels, window)) return false;
    if (index_ == nullptr) return true;
    std::ranges::fill(pixels, 0xA5);
    decoder_.decode_window(encoded_, *index_, window, pixels);
    if (!is_crop(pixels, window)) return false;
    const auto made = device_.decode(encoded_, *index_, window, {.height = window.height, .width = window.width});
    on_device_ = made.has_value();
    return !on_device_ || is_crop(*made, window);
  }

 private:
  bool is_crop(const WindowPixels& pixels, const ImageWindow& window) const {
    const auto row_bytes = static_cast<std::size_t>(window.width) * 3;
    for (std::int64_t row = 0; row < window.height; ++row) {
      const std::uint8_t* wanted = whole_.data() + ((window.top + row) * size_.width + window.left) * 3;
      if (!std::equal(wanted, wanted + row_bytes, pixels.data() + static_cast<std::size_t>(row) * row_bytes))
        return false;
    }
    return true;
  }

  ImageDecoder decoder_;
  std::span<const std::byte> encoded_;
  ImageSize size_;
  WindowPixels whole_;
  std::unique_ptr<const JpegIndex> index_;
  DeviceWindows device_;
  bool on_device_ = false;
};

std::int64_t pick(std::mt19937& random, std::int64_t from, std::int64_t to) {
  return from + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(to - from + 1));
}

ImageWindow random_window(const ImageSize& size, std::mt19937& random) {
  ImageWindow window;
  window.height = pick(random, 1, size.height);
  window.width = pick(random, 1, size.width);
  window.top = pick(random, 0, size.height - window.height);
  window.left = pick(random, 0, size.width - window.width);
  return window;
}

std::string text_of_window(const ImageSize& size, const ImageWindow& window) {
  return std::to_string(window.height) + "x" + std::to_string(window.width) + " at " + std::to_string(window.top) +
         "," + std::to_string(window.left) + " of " + std::to_string(size.height) + "x" +
         std::to_string(size.width);
}

struct Kind {
  const char* name;
  int channels;
  JpegOptions options;
};

class DecodeWindowTest : public ::testing::TestWithParam<Kind> {};

TEST_P(DecodeWindowTest, EqualsACropOfTheWholeOnRandomWindows) {
  std::mt19937 random(11);
  for (int image = 0; image < 24; ++image) {
    const int height = static_cast<int>(pick(random, 1, 140)), width = static_cast<int>(pick(random, 1, 170));
    const Bytes encoded =
        encode_jpeg(make_picture(height, width, GetParam().channels, random()), GetParam().options);
    WindowChecker checker(encoded);
    EXPECT_NE(checker.has_index(), GetParam().options.progressive);
    for (int i = 0; i < 60; ++i) {
      const ImageWindow window = random_window(checker.size(), random);
      ASSERT_TRUE(checker.equal(window)) << text_of_window(checker.size(), window);
    }
    EXPECT_EQ(checker.on_device(), !GetParam().options.progressive && GetParam().channels != 4);
  }
}

TEST_P(DecodeWindowTest, EqualsACropOfTheWholeOnEverySmallWindow) {
  for (const int side : {1, 7, 16, 17, 18, 33, 35}) {
    const Bytes encoded = encode_jpeg(make_picture(side, side, GetParam().channels, 5), GetParam().options);
    WindowChecker checker(encoded);
    for (std::int64_t at = 0; at < side; ++at) {
      for (std::int64_t extent = 1; extent <= std::min<std::int64_t>(3, side - at); ++extent) {
        const ImageWindow tall{.top = 0, .left = at, .height = side, .width = extent};
        const ImageWindow wide{.top = at, .left = 0, .height = extent, .width = side};
        ASSERT_TRUE(checker.equal(tall)) << text_of_window(checker.size(), tall);
        ASSERT_TRUE(checker.equal(wide)) << text_of_window(checker.size(), wide);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, DecodeWindowTest,
    ::testing::Values(Kind{"grey", 1, {}}, Kind{"grey_restarts", 1, {.restart_rows = 2}},
                      Kind{"yuv444", 3, {.horizontal = 1, .vertical = 1}},
                      Kind{"yuv422", 3, {.horizontal = 2, .vertical = 1}},
                      Kind{"yuv440", 3, {.horizontal = 1, .vertical = 2}}, Kind{"yuv420", 3, {}},
                      Kind{"yuv411", 3, {.horizontal = 4, .vertical = 1}},
                      Kind{"yuv410", 3, {.horizontal = 4, .vertical = 2}}, Kind{"cmyk", 4, {}},
                      Kind{"own_tables", 3, {.standard_tables = false}},
                      Kind{"own_tables444", 3, {.horizontal = 1, .vertical = 1, .standard_tables = false}},
                      Kind{"restarts", 3, {.restart_rows = 1}}, Kind{"progressive_grey", 1, {.progressive = true}},
                      Kind{"progressive444", 3, {.horizontal = 1, .vertical = 1, .progressive = true}},
                      Kind{"progressive422", 3, {.horizontal = 2, .vertical = 1, .progressive = true}},
                      Kind{"progressive440", 3, {.horizontal = 1, .vertical = 2, .progressive = true}},
                      Kind{"progressive420", 3, {.progressive = true}}),
    [](const ::testing::TestParamInfo<Kind>& kind) { return kind.param.name; });

// Made by nobody: what comes is no picture, but the same each time, and nothing else is touched.
TEST(DecodeWindowDeviceTest, AFalseIndexGivesTheSamePixelsEachTime) {
  const Bytes encoded = encode_jpeg(make_picture(90, 120, 3, 4));
  ImageDecoder decoder;
  std::vector<std::byte> bytes;
  index_of(decoder, encoded)->append_to(bytes);
  std::mt19937 random(14);
  DeviceWindows device;
  int decoded = 0;
  for (int i = 0; i < 300; ++i) {
    std::vector<std::byte> flipped = bytes;
    constexpr std::size_t kHead = 32;  // says how much follows
    for (int k = 0; k < 1 + i % 5; ++k) {
      flipped[kHead + random() % (flipped.size() - kHead)] ^= std::byte(1U << random() % 8);
    }
    JpegIndex index;
    if (!index.assign(flipped)) continue;
    const ImageWindow window{.top = 5, .left = 9, .height = 70, .width = 90};
    const auto first = device.decode(encoded, index, window, {.height = 30, .width = 40});
    EXPECT_EQ(device.decode(encoded, index, window, {.height = 30, .width = 40}, std::byte{0xAB}), first);
    decoded += first.has_value() ? 1 : 0;
  }
  EXPECT_GT(decoded, 100);
}

TEST(DecodeWindowPngTest, EqualsACropOfTheWhole) {
  std::mt19937 random(12);
  for (const bool interlaced : {false, true}) {
    const Bytes encoded = encode_png(make_picture(37, 41, 3, 6), {.interlaced = interlaced});
    WindowChecker checker(encoded);
    for (int i = 0; i < 200; ++i) {
      const ImageWindow window = random_window(checker.size(), random);
      ASSERT_TRUE(checker.equal(window)) << text_of_window(checker.size(), window);
    }
  }
}

TEST(DecodeWindowPhotographTest, EqualsACropOfTheWhole) {
  const auto path = shared_data("imagenet-sample-700.tar");
  if (!path) GTEST_SKIP() << "no ImageNet sample here: set HEADRACE_DATA";
  const SourcePtr source = image_archive(*path);
  std::mt19937 random(13);
  std::vector<std::byte> scratch;
  const auto step = static_cast<std::uint64_t>(long_or(1, 7));
  for (std::uint64_t i = 0; i < source->info().records; i += step) {
    WindowChecker checker(source->read(i, scratch).fields[0]);
    for (int k = 0; k < 4; ++k) {
      const ImageWindow window = random_window(checker.size(), random);
      ASSERT_TRUE(checker.equal(window)) << source->describe(i) << ": " << text_of_window(checker.size(), window);
    }
  }
}

}  // namespace
}  // namespace headrace::test
