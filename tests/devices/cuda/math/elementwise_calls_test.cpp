#include <gtest/gtest.h>

#include <vector>

#include "headrace/devices/cuda/math/elementwise_calls.h"
#include "headrace/tests/support/host_launcher.h"
#include "headrace/tests/support/reference.h"
#include "headrace/tests/support/twin_kernels.h"

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
    DeviceGroup devices = test::twin_devices(1);
    const auto stream = devices[0].create_stream();
    devices[0].kernels()->shift_images(*stream,
                                       {{x.data(), shape, DType::kF32}, {y.data(), shape, DType::kF32}, shift});
    stream->synchronize();
    return y;
  };
  EXPECT_EQ(shifted({}), x);
  EXPECT_EQ(shifted({.mirror = true}), (std::vector<float>{3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(shifted({.down = 1}), (std::vector<float>{4, 5, 6, 1, 2, 3}));
  EXPECT_EQ(shifted({.right = 1}), (std::vector<float>{2, 3, 2, 5, 6, 5}));
  EXPECT_EQ(shifted({.right = -1, .mirror = true}), (std::vector<float>{2, 1, 2, 5, 4, 5}));
}

constexpr Activation kActivations[] = {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kSilu};

// Widths of packs, of none, and more rows than one block has.
const std::vector<Shape> kShapes{{1, 1}, {3, 10}, {5, 24}, {700, 64}, {2, 3, 3, 2056}};

std::vector<float> shifted(std::int64_t elements, std::uint64_t seed) {
  std::vector<float> values = test::random_floats(elements, seed);
  for (float& value : values) value *= 3;
  return values;
}

TEST(BiasEpilogueWork, AddsTheBiasThenActivates) {
  for (const Shape& shape : kShapes) {
    std::vector<float> bias = shifted(shape.back(), 2);
    for (const Activation activation : kActivations) {
      for (const bool with_bias : {true, false}) {
        std::vector<float> y = shifted(shape.elements(), 1);
        const std::vector<float> given = y;
        const test::HostLauncher launch;
        const TensorView biases = with_bias ? TensorView{bias.data(), {shape.back()}, DType::kF32} : TensorView{};
        submit_bias_activation(launch, {y.data(), shape, DType::kF32}, biases, activation);
        for (std::size_t i = 0; i < y.size(); ++i) {
          const float sum = with_bias ? given[i] + bias[i % bias.size()] : given[i];
          ASSERT_NEAR(y[i], test::activated(activation, sum), 2e-6) << shape.to_string() << " at " << i;
        }
      }
    }
  }
}

TEST(BiasEpilogueWork, InBf16RoundsOnceBehindTheActivation) {
  for (const Shape& shape : kShapes) {
    std::vector<float> bias = shifted(shape.back(), 2);
    for (const Activation activation : kActivations) {
      std::vector<BFloat16> y;
      for (const float value : shifted(shape.elements(), 1)) y.push_back(nearest_bf16(value));
      const std::vector<BFloat16> given = y;
      const test::HostLauncher launch;
      submit_bias_activation(launch, {y.data(), shape, DType::kBF16}, {bias.data(), {shape.back()}, DType::kF32},
                             activation);
      for (std::size_t i = 0; i < y.size(); ++i) {
        const double wanted = test::activated(activation, widened(given[i]) + bias[i % bias.size()]);
        ASSERT_NEAR(widened(y[i]), wanted, std::abs(wanted) * (0x1p-8 + 3e-5) + 1e-36)
            << shape.to_string() << " at " << i;
      }
    }
  }
}

}  // namespace
}  // namespace headrace::cuda
