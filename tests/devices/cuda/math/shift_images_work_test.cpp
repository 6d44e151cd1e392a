#include "headrace/devices/cuda/math/shift_images_work.h"

#include <gtest/gtest.h>

#include <vector>

#include "headrace/tests/support/host_launcher.h"

namespace headrace::cuda {
namespace {

TEST(ShiftImagesWork, TheEdgeIsNotRepeated) {
  EXPECT_EQ(reflected(-1, 5), 1);
  EXPECT_EQ(reflected(-4, 5), 4);
  EXPECT_EQ(reflected(0, 5), 0);
  EXPECT_EQ(reflected(4, 5), 4);
  EXPECT_EQ(reflected(5, 5), 3);
  EXPECT_EQ(reflected(8, 5), 0);
}

TEST(ShiftImagesWork, ShiftsThenMirrors) {
  // Two rows of three pixels of one byte-like value each.
  std::vector<float> x{1, 2, 3, 4, 5, 6}, y(6);
  const Shape shape{1, 2, 3, 1};
  const auto shifted = [&](const ImageShift& shift) {
    const test::HostLauncher launch;
    submit_shift_images(launch, {x.data(), shape, DType::kF32}, shift, {y.data(), shape, DType::kF32});
    return y;
  };
  EXPECT_EQ(shifted({}), x);
  EXPECT_EQ(shifted({.mirror = true}), (std::vector<float>{3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(shifted({.down = 1}), (std::vector<float>{4, 5, 6, 1, 2, 3}));
  EXPECT_EQ(shifted({.right = 1}), (std::vector<float>{2, 3, 2, 5, 6, 5}));
  EXPECT_EQ(shifted({.right = -1, .mirror = true}), (std::vector<float>{2, 1, 2, 5, 4, 5}));
}

}  // namespace
}  // namespace headrace::cuda
