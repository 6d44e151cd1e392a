#include "headrace/devices/cuda/math/pooling_work.h"

#include <gtest/gtest.h>

namespace headrace::cuda {
namespace {

TEST(PoolingWork, CoveringWindowsAreThoseThatHoldThePosition) {
  for (std::int64_t window = 1; window <= 4; ++window) {
    for (std::int64_t stride = 1; stride <= 5; ++stride) {
      for (std::int64_t extent = window; extent <= 12; ++extent) {
        const std::int64_t windows = (extent - window) / stride + 1;
        for (std::int64_t position = 0; position < extent; ++position) {
          const Windows range = covering(position, window, stride, windows);
          for (std::int64_t w = 0; w < windows; ++w) {
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
  const std::int64_t index = (std::int64_t{1} << 35) + 5 * 17 + 3;
  const Pixel pixel = pixel_of(index, std::int64_t{1} << 34, 17);
  EXPECT_EQ((pixel.image * (std::int64_t{1} << 34) + pixel.y) * 17 + pixel.x, index);
  EXPECT_LT(pixel.x, 17);
  EXPECT_LT(pixel.y, std::int64_t{1} << 34);
  const Pixel small = pixel_of(3 * 35 + 2 * 7 + 6, 5, 7);
  EXPECT_EQ(small.image, 3);
  EXPECT_EQ(small.y, 2);
  EXPECT_EQ(small.x, 6);
}

}  // namespace
}  // namespace headrace::cuda
