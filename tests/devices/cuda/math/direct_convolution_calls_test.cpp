#include "headrace/devices/cuda/math/direct_convolution_calls.h"

#include <gtest/gtest.h>

#include <vector>

#include "headrace/tests/support/reference.h"
#include "headrace/tests/support/reference_layers.h"
#include "headrace/tests/support/twin_kernels.h"

namespace headrace::cuda {
namespace {

using test::ConvSizes;
using test::Reals;

constexpr ConvOptions kHalf{.precision = Precision::kBF16};

TEST(DirectConvolution, IsForSmallWindowsWithoutPadding) {
  EXPECT_TRUE(computes_directly(DType::kBF16, {24, 2, 2, 3}, kHalf));
  EXPECT_TRUE(computes_directly(DType::kF32, {8, 3, 3, 1}, {.stride = 2}));
  EXPECT_FALSE(computes_directly(DType::kF32, {24, 2, 2, 3}, kHalf)) << "operands would have to be rounded";
  EXPECT_FALSE(computes_directly(DType::kBF16, {24, 2, 2, 3}, {}));
  EXPECT_FALSE(computes_directly(DType::kF32, {24, 2, 2, 3}, {.pad_right = 1}));
  EXPECT_FALSE(computes_directly(DType::kF32, {24, 2, 2, 3}, {.dilation = 2}));
  EXPECT_FALSE(computes_directly(DType::kF32, {24, 2, 2, 3}, {.stride = {1, 2}}));
  EXPECT_FALSE(computes_directly(DType::kF32, {24, 2, 2, 3}, {.dilation = {1, 2}}));
  EXPECT_FALSE(computes_directly(DType::kF32, {8, 3, 3, 1}, {.groups = 8}));
  EXPECT_FALSE(computes_directly(DType::kF32, {20, 2, 2, 3}, {})) << "outputs in packs of eight";
  EXPECT_FALSE(computes_directly(DType::kF32, {24, 3, 3, 3}, {})) << "too many weights for registers";
}

// More pixels than a block has rows, with a stride, and fewer; outputs that leave threads of a block idle.
const std::vector<ConvSizes> kConvolutions{{40, 16, 17, 3, 24, 2, 2},
                                           {3, 9, 8, 3, 8, 2, 2, {.stride = 3}},
                                           {70, 9, 7, 1, 40, 3, 3, {.stride = 2}},
                                           {1, 3, 3, 1, 8, 3, 3}};

template <typename T>
struct Tensors {
  explicit Tensors(const ConvSizes& s)
      : x(random(s.x_count(), 1)),
        weights(random(s.weights_count(), 2)),
        // One more: a view that begins behind the first is not aligned for packs.
        y(random(s.y_count() + 1, 3)),
        bias(test::random_floats(s.outputs, 4)) {}

  static std::vector<T> random(std::int64_t count, std::uint64_t seed) {
    std::vector<T> values;
    for (const float value : test::random_floats(count, seed)) values.push_back(element_of<T>(value));
    return values;
  }
  static Reals reals(const std::vector<T>& values, std::size_t from, std::size_t count) {
    Reals result;
    for (std::size_t i = 0; i < count; ++i) result.push_back(static_cast<double>(value_of(values[from + i])));
    return result;
  }

  std::vector<T> x, weights, y;
  std::vector<float> bias;
};

template <typename T>
void expect_as_reference(double tolerance) {
  constexpr DType kType = std::is_same_v<T, float> ? DType::kF32 : DType::kBF16;
  DeviceGroup devices = test::twin_devices(1);
  const auto stream = devices[0].create_stream();
  Kernels& kernels = *devices[0].kernels();
  for (const ConvSizes& s : kConvolutions) {
    Tensors<T> t(s);
    ConvOptions options = s.options;
    if (kType == DType::kBF16) options.precision = Precision::kBF16;
    const Shape of_y{s.images, s.out_height(), s.out_width(), s.outputs};
    const TensorView x{t.x.data(), {s.images, s.height, s.width, s.channels}, kType};
    const TensorView weights{t.weights.data(), {s.outputs, s.kernel_height, s.kernel_width, s.channels}, kType};
    const TensorView bias{t.bias.data(), {s.outputs}, DType::kF32};
    const auto count = static_cast<std::size_t>(s.y_count()), outputs = static_cast<std::size_t>(s.outputs);
    const Reals linear = test::conv_forward(s, t.reals(t.x, 0, t.x.size()),
                                            t.reals(t.weights, 0, t.weights.size()), test::reals(t.bias));
    for (const std::size_t offset : {0, 1}) {
      for (const Activation activation :
           {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kSilu}) {
        Reals expected(outputs);
        const Reals dy = t.reals(t.y, offset, count);
        for (std::size_t i = 0; i < count; ++i) {
          expected[i % outputs] += dy[i] * test::activation_slope(activation, linear[i]);
        }
        const TensorView y{t.y.data() + offset, of_y, kType};
        std::vector<float> dbias(outputs, -1);
        kernels.conv_bias_backward(
            *stream, {x, weights, bias, y, {dbias.data(), {s.outputs}, DType::kF32}, options, activation});
        stream->synchronize();
        for (std::size_t o = 0; o < outputs; ++o) {
          ASSERT_NEAR(dbias[o], expected[o], tolerance * std::max(1.0, std::abs(expected[o]))) << o;
        }
        std::vector<T> result(count + offset);
        const TensorView written{result.data() + offset, of_y, kType};
        kernels.conv_forward(*stream, {x, weights, bias, written, options, activation});
        stream->synchronize();
        for (std::size_t i = 0; i < count; ++i) {
          const double wanted = test::activated(activation, linear[i]);
          ASSERT_NEAR(value_of(result[offset + i]), wanted,
                      (kType == DType::kF32 ? 2e-6 : std::abs(wanted) / 256 + 2e-5))
              << s.channels << " channels, element " << i;
        }
      }
    }
  }
}

TEST(DirectConvolution, InF32) { expect_as_reference<float>(2e-5); }
TEST(DirectConvolution, InBf16) { expect_as_reference<BFloat16>(2e-4); }

TEST(DirectTiles, WindowCornersAreThoseOfEachPixel) {
  constexpr std::uint32_t kStride = 2, kChannels = 3, kLine = 17 * kChannels, kImage = 13 * kLine;
  const WindowCorners corners(6, 8, kImage, kLine * kStride, kStride * kChannels);
  for (std::uint32_t pixel = 0; pixel < 3 * 6 * 8; ++pixel) {
    const std::uint32_t image = pixel / 48, y = pixel / 8 % 6, x = pixel % 8;
    EXPECT_EQ(corners.corner(pixel), image * kImage + y * kStride * kLine + x * kStride * kChannels) << pixel;
  }
}

TEST(DirectTiles, PairsHoldEveryValueOfAWindowOnce) {
  const auto count = [](auto window) {
    using Window = decltype(window);
    std::vector<int> found(Window::kValues);
    for (int pair = 0; pair < kTileDepth / 2; ++pair) {
      for (const int i : {0, 1}) {
        if (const WindowPair<Window> of(pair); of.has(i)) ++found[static_cast<std::size_t>(of.value(i))];
      }
    }
    return found;
  };
  EXPECT_EQ(count(ConvWindow<2, 2, 3>{}), std::vector<int>(12, 1));
  EXPECT_EQ(count(ConvWindow<3, 3, 1>{}), std::vector<int>(9, 1));
}

}  // namespace
}  // namespace headrace::cuda
