#include "headrace/devices/cuda/math/elementwise_calls.h"

#include <gtest/gtest.h>

#include <vector>

#include "headrace/tests/support/host_launcher.h"

namespace headrace::cuda {
namespace {

// Any compiler that runs Philox at compile time runs it on a GPU.
static_assert(Philox::round10({0, 0, 0, 0}, {0, 0}) ==
              Philox::Block{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8});

TEST(DropoutWork, WordsAreThoseOfTheGenerator) {
  const std::uint64_t row = (std::uint64_t{7} << 32) + 9;
  Philox generator({.seed = 0xABCDEF0123456789ULL, .epoch = 0x34567890U, .record = row, .operation = 513});
  for (std::uint32_t block = 0; block < 5; ++block) {
    for (const std::uint32_t word : dropout_words(0xABCDEF0123456789ULL, 0x1234567890ULL, row, 513, block)) {
      EXPECT_EQ(word, generator.next_u32()) << block;
    }
  }
}

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
