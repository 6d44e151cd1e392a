#include "headrace/tests/support/image_windows.h"
#include "headrace/tests/support/images.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

using DamagedPixels = std::vector<std::uint8_t>;

// What became of a damaged image: the error's words, or pixels.
struct DecodedOutcome {
  std::string error;
  DamagedPixels pixels;
  bool operator==(const DecodedOutcome&) const = default;
};

// `before` fills the buffer, so that a pixel never written shows as a difference.
template <typename Decode>
DecodedOutcome try_decode(std::size_t pixels, std::uint8_t before, const Decode& decode) {
  DecodedOutcome outcome{.error = {}, .pixels = DamagedPixels(pixels * 3, before)};
  try {
    decode(outcome.pixels);
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == ErrorCode::kDataCorrupt || error.code() == ErrorCode::kInvalidArgument);
    outcome = {.error = error.what(), .pixels = {}};
  }
  return outcome;
}

class DamagedImageTest : public ::testing::Test {
 protected:
  static constexpr ImageWindow kWindow{.top = 9, .left = 17, .height = 20, .width = 18};
  static constexpr std::size_t kHeight = 44, kWidth = 52;

  static DecodedOutcome whole(ImageDecoder& decoder, const Bytes& encoded, std::uint8_t before) {
    return try_decode(kHeight * kWidth, before, [&](DamagedPixels& pixels) { decoder.decode(encoded, pixels); });
  }
  static DecodedOutcome window(ImageDecoder& decoder, const Bytes& encoded, std::uint8_t before) {
    return try_decode(20 * 18, before,
                      [&](DamagedPixels& pixels) { decoder.decode_window(encoded, kWindow, pixels); });
  }

  // Of an image that has an index.
  static DecodedOutcome indexed_window(ImageDecoder& decoder, const Bytes& encoded, const JpegIndex& index) {
    return try_decode(20 * 18, 0xA5,
                      [&](DamagedPixels& pixels) { decoder.decode_window(encoded, index, kWindow, pixels); });
  }

  // An error, or pixels that depend on the bytes alone: not on the buffer nor on what this decoder saw before.
  void check(const Bytes& encoded) {
    ImageDecoder fresh;
    const DecodedOutcome first = whole(used_, encoded, 0x00);
    EXPECT_EQ(first, whole(used_, encoded, 0xFF));
    EXPECT_EQ(first, whole(fresh, encoded, 0x5A));
    const DecodedOutcome part = window(used_, encoded, 0x00);
    EXPECT_EQ(part, window(used_, encoded, 0xFF));
    EXPECT_EQ(part, window(fresh, encoded, 0x5A));
    if (first.error.empty() && part.error.empty()) {
      EXPECT_TRUE(equals_crop(part.pixels, first.pixels));
    }
    if (const auto index = index_of(used_, encoded)) {
      const DecodedOutcome indexed = indexed_window(fresh, encoded, *index);
      EXPECT_EQ(part.error, indexed.error);
      EXPECT_EQ(part.pixels, indexed.pixels);
      ++indexes_;
    }
    errors_ += first.error.empty() ? 0 : 1;
  }

  static bool equals_crop(const DamagedPixels& part, const DamagedPixels& all) {
    for (std::size_t row = 0; row < 20; ++row) {
      const auto from = all.begin() + static_cast<std::ptrdiff_t>(((9 + row) * kWidth + 17) * 3);
      if (!std::equal(from, from + 18 * 3, part.begin() + static_cast<std::ptrdiff_t>(row * 18 * 3))) return false;
    }
    return true;
  }

  static std::vector<Bytes> images() {
    const Picture picture = make_picture(kHeight, kWidth, 3, 8);
    return {encode_jpeg(picture, {.quality = 60}),
            encode_jpeg(picture, {.quality = 60, .restart_rows = 1, .standard_tables = false}),
            encode_jpeg(picture, {.quality = 60, .progressive = true}),
            encode_jpeg(picture, {.quality = 60, .horizontal = 1, .vertical = 1}),
            encode_png(make_picture(kHeight, kWidth, 3, 8)),
            encode_png(picture, {.interlaced = true})};
  }

  ImageDecoder used_;
  std::size_t errors_ = 0, indexes_ = 0;
};

TEST_F(DamagedImageTest, EveryTruncationIsAnError) {
  for (const Bytes& whole_image : images()) {
    for (std::size_t size = 0; size < whole_image.size(); size += size < 700 ? 1 : 11) {
      errors_ = 0;
      check(Bytes(whole_image.begin(), whole_image.begin() + static_cast<std::ptrdiff_t>(size)));
      ASSERT_EQ(errors_, 1U) << size << " of " << whole_image.size();
    }
    errors_ = 0;
    check(Bytes(whole_image.begin(), whole_image.end() - 1));
    EXPECT_EQ(errors_, 1U);
  }
}

TEST_F(DamagedImageTest, FlippedBitsGiveAnErrorOrACleanImage) {
  std::mt19937 random(9);
  for (const Bytes& whole_image : images()) {
    errors_ = 0;
    for (int i = 0; i < 1500; ++i) {
      Bytes damaged = whole_image;
      // Half of the flips hit the headers, where they do most.
      const std::size_t reach = i % 2 == 0 ? damaged.size() : std::min<std::size_t>(damaged.size(), 620);
      for (auto flips = 1 + random() % 3; flips > 0; --flips) {
        damaged[random() % reach] ^= static_cast<std::byte>(1U << random() % 8);
      }
      check(damaged);
    }
    EXPECT_GT(errors_, 100U);
  }
  EXPECT_GT(indexes_, 100U);
}

TEST_F(DamagedImageTest, DamageAfterTheImageChangesNothing) {
  for (const Bytes& whole_image : images()) {
    Bytes longer = whole_image;
    longer.insert(longer.end(), 100, std::byte{0xFF});
    EXPECT_EQ(whole(used_, longer, 0), whole(used_, whole_image, 0));
  }
}

TEST_F(DamagedImageTest, NoFlippedBitOfAPngGivesOtherPixels) {
  const Bytes image = images()[4];
  const DecodedOutcome good = whole(used_, image, 0);
  ASSERT_TRUE(good.error.empty());
  for (std::size_t bit = 0; bit < image.size() * 8; bit += 5) {
    Bytes damaged = image;
    damaged[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    const DecodedOutcome outcome = whole(used_, damaged, 0);
    if (outcome.error.empty()) {
      ASSERT_EQ(outcome.pixels, good.pixels) << "bit " << bit;
    }
  }
}

// They are what is left over when a flipped bit made the data before them mean something shorter.
TEST_F(DamagedImageTest, StrayBytesBeforeTheEndMarkAreAnErrorButFillBytesAreNot) {
  Bytes stray = images()[0], filled = images()[0];
  const DecodedOutcome good = whole(used_, stray, 0);
  stray.insert(stray.end() - 2, 50, std::byte{0x35});
  filled.insert(filled.end() - 2, 50, std::byte{0xFF});
  EXPECT_NE(whole(used_, stray, 0).error, "");
  EXPECT_EQ(whole(used_, filled, 0), good);
}

}  // namespace
}  // namespace headrace::test
