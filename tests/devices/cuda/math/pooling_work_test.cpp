#include "headrace/devices/cuda/math/pooling_work.h"

#include <gtest/gtest.h>

namespace headrace::cuda {
namespace {

TEST(PoolingWork, CoveringWindowsAreThoseThatHoldThePosition) {
  for (int window = 1; window <= 4; ++window) {
    for (int stride = 1; stride <= 5; ++stride) {
      for (int extent = window; extent <= 12; ++extent) {
        const int windows = (extent - window) / stride + 1;
        for (int position = 0; position < extent; ++position) {
          const Windows range = covering(position, window, Divisor(stride), windows);
          for (int w = 0; w < windows; ++w) {
            const bool holds = w * stride <= position && position < w * stride + window;
            EXPECT_EQ(holds, range.first <= w && w <= range.last)
                << position << " of " << extent << ", window " << window << " by " << stride << ", number " << w;
          }
        }
      }
    }
  }
}

TEST(PoolingWork, PixelsAreFoundBeyond32Bits) {
  const std::int64_t image = (std::int64_t{1} << 35) + 5;
  const Pixel far = PixelGrid(31, 17).pixel((image * 31 + 30) * 17 + 16);
  EXPECT_EQ(far.image, image);
  EXPECT_EQ(far.y, 30);
  EXPECT_EQ(far.x, 16);
  const Pixel near = PixelGrid(5, 7).pixel(3 * 35 + 2 * 7 + 6);
  EXPECT_EQ(near.image, 3);
  EXPECT_EQ(near.y, 2);
  EXPECT_EQ(near.x, 6);
}

TEST(Divisor, QuotientsAreExactAroundEveryMultiple) {
  for (const std::int64_t divisor : {1LL, 2LL, 3LL, 5LL, 7LL, 15LL, 31LL, 32LL, 961LL, 65537LL, (1LL << 24) - 3}) {
    const Divisor by(divisor);
    const std::int64_t largest = (std::int64_t{1} << 62) / divisor;  // n d < 2^64 for all n below it
    for (const std::int64_t factor :
         {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, std::int64_t{12345}, largest / divisor}) {
      for (std::int64_t n = factor * divisor; n<(factor + 1) * divisor; n += divisor> 4 ? divisor / 4 : 1) {
        EXPECT_EQ(by.quotient(n), n / divisor) << n << " / " << divisor;
      }
      const std::int64_t below = (factor + 1) * divisor - 1;
      EXPECT_EQ(by.quotient(below), factor) << below << " / " << divisor;
    }
  }
}

TEST(SmallDivisor, QuotientsAreExactAroundEveryMultiple) {
  constexpr std::uint32_t kMax = 0x7FFFFFFFU;
  for (const std::uint32_t divisor : {1U, 2U, 3U, 5U, 7U, 31U, 32U, 33U, 961U, 65537U, (1U << 30) + 1U, kMax}) {
    const SmallDivisor by(static_cast<int>(divisor));
    for (const std::uint32_t factor : {0U, 1U, 2U, 12345U, kMax / divisor}) {
      if (factor > kMax / divisor) continue;
      for (const std::uint32_t n :
           {factor * divisor, factor * divisor + divisor / 2, factor * divisor + divisor - 1}) {
        if (n > kMax) continue;
        EXPECT_EQ(by.quotient(n), n / divisor) << n << " / " << divisor;
      }
    }
  }
}

}  // namespace

}  // namespace headrace::cuda
