#include "headrace/pipeline/operations/kernels/level_kernels.h"
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

}  // namespace
}  // namespace headrace::test
