// Kernels on levels and colours.
#include "headrace/pipeline/operations/kernels/level_kernels.h"
#include "headrace/pipeline/operations/kernels/rgb_kernels.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

using Levels = std::vector<std::uint8_t>;

constexpr std::int64_t kLevelRows = 19, kLevelColumns = 37, kLevelChannels = 3;

// All levels, or some of the middle.
Levels some_levels(std::uint32_t low, std::uint32_t high) {
  Levels levels(kLevelRows * kLevelColumns * kLevelChannels);
  Philox random({.seed = 8});
  for (std::uint8_t& level : levels) level = static_cast<std::uint8_t>(low + random.below(high - low + 1));
  return levels;
}

Levels changed_by(const Levels& levels, const std::function<void(const LevelWork&)>& kernel) {
  Levels result(levels.size());
  kernel({.from = levels.data(),
          .height = kLevelRows,
          .width = kLevelColumns,
          .channels = kLevelChannels,
          .to = result.data()});
  return result;
}

void expect_each(const Levels& actual, const Levels& levels, const std::function<int(int)>& expected) {
  for (std::size_t i = 0; i < levels.size(); ++i) ASSERT_EQ(actual[i], expected(levels[i])) << int{levels[i]};
}

TEST(LevelKernels, InvertPosterizeAndSolarize) {
  const Levels levels = some_levels(0, 255);
  expect_each(changed_by(levels, invert_levels), levels, [](int level) { return 255 - level; });
  for (int bits = 0; bits <= 8; ++bits) {
    expect_each(changed_by(levels, [&](const LevelWork& work) { posterize_levels(work, bits); }), levels,
                [&](int level) { return level >> (8 - bits) << (8 - bits); });
  }
  for (const int threshold : {0, 1, 128, 255, 256}) {
    expect_each(changed_by(levels, [&](const LevelWork& work) { solarize_levels(work, threshold); }), levels,
                [&](int level) { return level >= threshold ? 255 - level : level; });
  }
}

// Each channel by itself.
Levels channel_of(const Levels& levels, std::size_t channel) {
  Levels one;
  for (std::size_t i = channel; i < levels.size(); i += kLevelChannels) one.push_back(levels[i]);
  return one;
}

TEST(LevelKernels, StretchReachesFrom0To255) {
  const Levels levels = some_levels(60, 180);
  const Levels result = changed_by(levels, stretch_levels);
  for (std::size_t c = 0; c < kLevelChannels; ++c) {
    const Levels before = channel_of(levels, c), after = channel_of(result, c);
    const auto [low, high] = std::ranges::minmax(before);
    for (std::size_t i = 0; i < before.size(); ++i) {
      ASSERT_NEAR(after[i], (before[i] - low) * 255.0 / (high - low), 1);
    }
    EXPECT_EQ(std::ranges::min(after), 0);
    EXPECT_EQ(std::ranges::max(after), 255);
  }
  const Levels plane(levels.size(), 7);
  EXPECT_EQ(changed_by(plane, stretch_levels), plane);
}

// Pillow: the levels below by the size of a 255th, half of one added.
TEST(LevelKernels, EqualizeGivesEachLevelItsShare) {
  const Levels levels = some_levels(20, 90);
  const Levels result = changed_by(levels, equalize_levels);
  for (std::size_t c = 0; c < kLevelChannels; ++c) {
    const Levels before = channel_of(levels, c), after = channel_of(result, c);
    const auto count_of = [&](std::uint8_t level) { return std::ranges::count(before, level); };
    const auto step = (std::ssize(before) - count_of(std::ranges::max(before))) / 255;
    ASSERT_GT(step, 0);
    for (std::size_t i = 0; i < before.size(); ++i) {
      const auto below = std::ranges::count_if(before, [&](std::uint8_t level) { return level < before[i]; });
      ASSERT_EQ(after[i], std::min<std::ptrdiff_t>(255, (step / 2 + below) / step));
    }
  }
  const Levels plane(levels.size(), 7);
  EXPECT_EQ(changed_by(plane, equalize_levels), plane);
}

TEST(LevelKernels, SharpenLeavesTheBorder) {
  const Levels levels = some_levels(0, 255);
  for (const float factor : {0.0F, 0.3F, 1.0F, 2.5F}) {
    const Levels result = changed_by(levels, [&](const LevelWork& work) { sharpen_levels(work, factor); });
    const auto at = [&](std::int64_t y, std::int64_t x, std::int64_t c) {
      return static_cast<std::size_t>((y * kLevelColumns + x) * kLevelChannels + c);
    };
    for (std::int64_t y = 0; y < kLevelRows; ++y) {
      for (std::int64_t x = 0; x < kLevelColumns; ++x) {
        for (std::int64_t c = 0; c < kLevelChannels; ++c) {
          const int level = levels[at(y, x, c)];
          if (y == 0 || x == 0 || y == kLevelRows - 1 || x == kLevelColumns - 1) {
            ASSERT_EQ(result[at(y, x, c)], level);
            continue;
          }
          int sum = 4 * level;
          for (std::int64_t dy = -1; dy <= 1; ++dy) {
            for (std::int64_t dx = -1; dx <= 1; ++dx) sum += levels[at(y + dy, x + dx, c)];
          }
          const double smooth = std::floor(sum / 13.0 + 0.5);
          const double sharp = std::clamp(smooth + (level - smooth) * double{factor}, 0.0, 255.0);
          ASSERT_NEAR(result[at(y, x, c)], std::floor(sharp + 1e-4), 0);
        }
      }
    }
  }
  const Levels small{1, 200, 3, 4};
  Levels result(4);
  sharpen_levels({.from = small.data(), .height = 2, .width = 2, .to = result.data()}, 3);
  EXPECT_EQ(result, small);
}

class RgbKernelsTest : public testing::TestWithParam<std::int64_t> {
 protected:
  RgbKernelsTest() {
    Philox random({.seed = 3});
    for (std::uint8_t& value : bytes_) value = static_cast<std::uint8_t>(random.below(256));
    for (int i = 0; i < 48; ++i) {
      scale_.push_back(0.01F * static_cast<float>(1 + i % 3));
      shift_.push_back(-0.3F * static_cast<float>(1 + i % 3));
    }
  }

  RgbImage image(Direction direction) const {
    return {
        .first = bytes_.data(), .stride = width_ * 3 + 5, .height = 3, .width = width_, .direction = direction};
  }

  std::int64_t width_ = GetParam();
  std::vector<std::uint8_t> bytes_ = std::vector<std::uint8_t>(static_cast<std::size_t>(3 * (width_ * 3 + 5)));
  std::vector<float> scale_, shift_;
};

TEST_P(RgbKernelsTest, FloatsAreThePortableOnesBitForBit) {
  for (const Direction direction : {Direction::kAsStored, Direction::kMirrored}) {
    for (const auto kernel : {&RgbKernels::to_planes, &RgbKernels::to_pixels}) {
      std::vector<float> fast(static_cast<std::size_t>(9 * width_)), plain(fast.size());
      (portable_rgb_kernels().*kernel)(image(direction), scale_.data(), shift_.data(), {}, plain.data());
      for (const RgbKernels& kernels : runnable_rgb_kernels()) {
        (kernels.*kernel)(image(direction), scale_.data(), shift_.data(), {}, fast.data());
        ASSERT_EQ(fast, plain);
      }
    }
  }
}

TEST_P(RgbKernelsTest, StreamedOnesAreTheSameAtAnyPlace) {
  for (const Direction direction : {Direction::kAsStored, Direction::kMirrored}) {
    for (const auto kernel : {&RgbKernels::to_planes, &RgbKernels::to_pixels}) {
      const auto size = static_cast<std::size_t>(9 * width_);
      std::vector<float> plain(size);
      (portable_rgb_kernels().*kernel)(image(direction), scale_.data(), shift_.data(), {}, plain.data());
      std::vector<float> room(size + 32);
      for (const std::size_t offset : {0, 1, 8}) {  // from a multiple of 64 bytes
        const std::size_t into_line = reinterpret_cast<std::uintptr_t>(room.data()) / sizeof(float) % 16;
        float* to = room.data() + (16 - into_line) % 16 + offset;
        for (const RgbKernels& kernels : runnable_rgb_kernels()) {
          std::fill(to, to + size, -1.0F);
          (kernels.*kernel)(image(direction), scale_.data(), shift_.data(), {.stores = Stores::kNonTemporal}, to);
          EXPECT_EQ(std::vector<float>(to, to + size), plain) << offset;
        }
      }
    }
  }
}

// What reaches beyond the picture, on any side and altogether, is as if the zeros were there.
TEST_P(RgbKernelsTest, BordersAreZeros) {
  constexpr std::int64_t kPad = 6, kRows = 5;
  const std::int64_t stride = (width_ + 2 * kPad) * 3;
  std::vector<std::uint8_t> whole(static_cast<std::size_t>((kRows + 2 * kPad) * stride));
  std::vector<std::uint8_t> picture(static_cast<std::size_t>(kRows * width_ * 3));
  Philox random({.seed = 4});
  for (std::int64_t y = 0; y < kRows; ++y) {
    for (std::int64_t x = 0; x < 3 * width_; ++x) {
      const auto value = static_cast<std::uint8_t>(random.below(256));
      picture[static_cast<std::size_t>(y * width_ * 3 + x)] = value;
      whole[static_cast<std::size_t>((y + kPad) * stride + 3 * kPad + x)] = value;
    }
  }
  for (const std::int64_t top : {-6, -2, 0, 3, 6}) {
    for (const std::int64_t left : {-6, -1, 0, 2, 6}) {
      const RgbBorder border{.above = std::min(kRows, std::max<std::int64_t>(0, -top)),
                             .below = std::min(kRows, std::max<std::int64_t>(0, top)),
                             .left = std::min(width_, std::max<std::int64_t>(0, -left)),
                             .right = std::min(width_, std::max<std::int64_t>(0, left))};
      RgbImage padded{.first = whole.data() + (top + kPad) * stride + 3 * (left + kPad),
                      .stride = stride,
                      .height = kRows,
                      .width = width_};
      RgbImage bordered{.first = picture.data() +
                                 (std::max<std::int64_t>(top, 0) * width_ + std::max<std::int64_t>(left, 0)) * 3,
                        .stride = 3 * width_,
                        .height = kRows,
                        .width = width_,
                        .border = border};
      for (const Direction direction : {Direction::kAsStored, Direction::kMirrored}) {
        padded.direction = bordered.direction = direction;
        for (const auto kernel : {&RgbKernels::to_planes, &RgbKernels::to_pixels}) {
          for (const RgbKernels& kernels : runnable_rgb_kernels()) {
            std::vector<float> expected(static_cast<std::size_t>(3 * kRows * width_)), found(expected.size());
            (portable_rgb_kernels().*kernel)(padded, scale_.data(), shift_.data(), {}, expected.data());
            (kernels.*kernel)(bordered, scale_.data(), shift_.data(), {.ahead = std::as_bytes(std::span(picture))},
                              found.data());
            ASSERT_EQ(found, expected) << top << " " << left;
          }
        }
      }
    }
  }
}

// A rectangle that reaches beyond the picture on all sides, and by more than a row of it.
TEST_P(RgbKernelsTest, BordersMayBeOnAllSides) {
  constexpr std::int64_t kRows = 7;
  for (const std::int64_t pixels : {std::int64_t{1}, (width_ + 1) / 2, width_}) {
    const std::int64_t left = (width_ - pixels) / 2;
    const RgbBorder border{.above = 1, .below = 2, .left = left, .right = width_ - pixels - left};
    const std::int64_t rows = kRows - border.above - border.below;
    std::vector<std::uint8_t> whole(static_cast<std::size_t>(kRows * width_ * 3));
    std::vector<std::uint8_t> picture(static_cast<std::size_t>(rows * pixels * 3));
    Philox random({.seed = 5});
    for (std::int64_t i = 0; i < rows * pixels * 3; ++i) {
      const std::int64_t y = i / (pixels * 3), x = i % (pixels * 3);
      picture[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(1 + random.below(255));
      whole[static_cast<std::size_t>(((y + border.above) * width_ + left) * 3 + x)] =
          picture[static_cast<std::size_t>(i)];
    }
    RgbImage padded{.first = whole.data(), .stride = 3 * width_, .height = kRows, .width = width_};
    RgbImage bordered{
        .first = picture.data(), .stride = 3 * pixels, .height = kRows, .width = width_, .border = border};
    for (const Direction direction : {Direction::kAsStored, Direction::kMirrored}) {
      padded.direction = bordered.direction = direction;
      for (const auto kernel : {&RgbKernels::to_planes, &RgbKernels::to_pixels}) {
        for (const RgbKernels& kernels : runnable_rgb_kernels()) {
          std::vector<float> expected(static_cast<std::size_t>(3 * kRows * width_)), found(expected.size());
          (portable_rgb_kernels().*kernel)(padded, scale_.data(), shift_.data(), {}, expected.data());
          (kernels.*kernel)(bordered, scale_.data(), shift_.data(), {}, found.data());
          ASSERT_EQ(found, expected) << pixels;
        }
      }
    }
  }
}

TEST_P(RgbKernelsTest, MirrorsLikeThePortableOne) {
  std::vector<std::uint8_t> fast(static_cast<std::size_t>(9 * width_)), plain(fast.size());
  portable_rgb_kernels().mirror(image(Direction::kAsStored), plain.data());
  for (const RgbKernels& kernels : runnable_rgb_kernels()) {
    kernels.mirror(image(Direction::kAsStored), fast.data());
    ASSERT_EQ(fast, plain);
  }
  EXPECT_EQ(plain.front(), bytes_[static_cast<std::size_t>(3 * (width_ - 1))]);
}

INSTANTIATE_TEST_SUITE_P(Widths, RgbKernelsTest, testing::Values(1, 7, 15, 16, 17, 32, 47, 48, 224));

}  // namespace
}  // namespace headrace::test
