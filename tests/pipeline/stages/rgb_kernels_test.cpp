#include "headrace/pipeline/stages/rgb_kernels.h"

#include <gtest/gtest.h>

#include <vector>

#include "headrace/devices/base/rng.h"

namespace headrace {
namespace {

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
      (rgb_kernels().*kernel)(image(direction), scale_.data(), shift_.data(), Stores::kCached, fast.data());
      (portable_rgb_kernels().*kernel)(image(direction), scale_.data(), shift_.data(), Stores::kCached,
                                       plain.data());
      ASSERT_EQ(fast, plain);
    }
  }
}

TEST_P(RgbKernelsTest, StreamedOnesAreTheSameAtAnyPlace) {
  for (const Direction direction : {Direction::kAsStored, Direction::kMirrored}) {
    for (const auto kernel : {&RgbKernels::to_planes, &RgbKernels::to_pixels}) {
      const auto size = static_cast<std::size_t>(9 * width_);
      std::vector<float> plain(size);
      (portable_rgb_kernels().*kernel)(image(direction), scale_.data(), shift_.data(), Stores::kCached,
                                       plain.data());
      std::vector<float> room(size + 32);
      for (const std::size_t offset : {0, 1, 8}) {  // from a multiple of 64 bytes
        const std::size_t into_line = reinterpret_cast<std::uintptr_t>(room.data()) / sizeof(float) % 16;
        float* to = room.data() + (16 - into_line) % 16 + offset;
        (rgb_kernels().*kernel)(image(direction), scale_.data(), shift_.data(), Stores::kStreamed, to);
        EXPECT_EQ(std::vector<float>(to, to + size), plain) << offset;
      }
    }
  }
}

TEST_P(RgbKernelsTest, MirrorsLikeThePortableOne) {
  std::vector<std::uint8_t> fast(static_cast<std::size_t>(9 * width_)), plain(fast.size());
  rgb_kernels().mirror(image(Direction::kAsStored), fast.data());
  portable_rgb_kernels().mirror(image(Direction::kAsStored), plain.data());
  ASSERT_EQ(fast, plain);
  EXPECT_EQ(plain.front(), bytes_[static_cast<std::size_t>(3 * (width_ - 1))]);
}

INSTANTIATE_TEST_SUITE_P(Widths, RgbKernelsTest, testing::Values(1, 7, 15, 16, 17, 32, 47, 48, 224));

}  // namespace
}  // namespace headrace
