// The kernels for convolutions of 24 channels, every block, warp and lane of them, on a model of the GPU's
// instructions.
#include "headrace/devices/cuda/math/narrow_convolution_work.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>
#include <vector>

#include "headrace/tests/support/model_warp.h"
#include "headrace/tests/support/reference_layers.h"

namespace headrace {
namespace {

using namespace cuda::narrow;
using test::ConvSizes;
using test::ModelWarp;
using test::Reals;

struct Case {
  int images, height, width, band_lines;
};

const Case kCases[] = {{1, 1, 1, 1}, {2, 5, 4, 2}, {3, 9, 7, 9}, {1, 31, 31, 8}, {1, 17, 15, 16}};

std::vector<BFloat16> numbers(std::size_t count, std::uint32_t seed) {
  std::vector<BFloat16> values;
  for (std::size_t i = 0; i < count; ++i) {
    seed = seed * 1664525U + 1013904223U;
    values.push_back(nearest_bf16(static_cast<float>(seed >> 8) / 8388608.0F - 1.0F));
  }
  return values;
}

Reals reals(const std::vector<BFloat16>& values) {
  Reals result;
  for (const BFloat16 value : values) result.push_back(static_cast<double>(widened(value)));
  return result;
}

class NarrowConvolution : public testing::TestWithParam<Case> {
 protected:
  static std::size_t pixels() {
    return static_cast<std::size_t>(GetParam().images) *
           static_cast<std::size_t>(GetParam().height * GetParam().width);
  }
  static Bands bands() { return {GetParam().images, GetParam().height, GetParam().width, GetParam().band_lines}; }
  static ConvSizes sizes() {
    const Case& c = GetParam();
    constexpr ConvOptions kSame{.pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
    return {c.images, c.height, c.width, kChannels, kOutputs, 3, 3, kSame};
  }

  // Returns a block's shared memory as its threads load it; what they do not load are NaNs.
  template <typename Work>
  static std::vector<std::byte> loaded(const Work& work, const Band& band) {
    const Case& c = GetParam();
    std::vector<std::byte> shared(Work::shared_bytes(c.width, c.band_lines), std::byte{0xFF});
    for (int thread = 0; thread < Work::kThreads; ++thread) {
      work.load(band, thread, [&](int to, const void* from) {
        std::byte* at = &shared.at(static_cast<std::size_t>(to + kChunkBytes - 1)) - (kChunkBytes - 1);
        from == nullptr ? std::memset(at, 0, kChunkBytes) : std::memcpy(at, from, kChunkBytes);
      });
    }
    return shared;
  }

  template <typename Values>
  static void expect_equal(const Values& values, const Reals& expected, double tolerance) {
    double error = 0, norm = 0;
    ASSERT_EQ(values.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double difference = static_cast<double>(cuda::value_of(values[i])) - expected[i];
      error += difference * difference;
      norm += expected[i] * expected[i];
    }
    EXPECT_LE(std::sqrt(error), tolerance * std::sqrt(norm));
  }

  const std::vector<BFloat16> x_ = numbers(pixels() * kChannels, 1), dy_ = numbers(pixels() * kOutputs, 2);
  const std::vector<BFloat16> weights_ = numbers(kOutputs * kWindowValues, 3);
};

TEST_P(NarrowConvolution, Forward) {
  std::vector<BFloat16> y(pixels() * kOutputs, BFloat16{0xFFFF});
  const Forward work{x_.data(), weights_.data(), y.data(), bands()};
  for (std::int64_t block = 0; block < work.bands.count(); ++block) {
    const Band band = work.bands.band(block);
    const std::vector<std::byte> shared = loaded(work, band);
    for (int number = 0; number < Forward::kWarps; ++number) {
      ModelWarp warp(shared);
      Forward::Weights<ModelWarp> own;
      work.fetch(warp, number, own);
      work.run(warp, number, band, own);
    }
  }
  expect_equal(y, conv_forward(sizes(), reals(x_), reals(weights_), {}), 1.0 / 256);
}

TEST_P(NarrowConvolution, InputGradient) {
  ASSERT_LE(GetParam().band_lines * GetParam().width, InputGradient::kMaxPixels) << "a block takes no more";
  std::vector<BFloat16> dx(pixels() * kChannels, BFloat16{0xFFFF});
  const InputGradient work{dy_.data(), weights_.data(), dx.data(), bands()};
  for (std::int64_t block = 0; block < work.bands.count(); ++block) {
    const Band band = work.bands.band(block);
    const std::vector<std::byte> shared = loaded(work, band);
    for (int number = 0; number < InputGradient::kWarps; ++number) {
      ModelWarp warp(shared);
      work.run(warp, number, band);
    }
  }
  expect_equal(dx, conv_backward_data(sizes(), reals(dy_), reals(weights_)), 1.0 / 256);
}

TEST_P(NarrowConvolution, WeightGradient) {
  std::vector<float> partial(std::size_t{WeightGradient::kBlocks} * kOutputs * kWindowValues, NAN);
  std::vector<float> dweights(kOutputs * kWindowValues);
  const WeightGradient work{x_.data(), dy_.data(), partial.data(), bands()};
  for (std::int64_t block = 0; block < WeightGradient::kBlocks; ++block) {
    std::vector<WeightGradient::Sums<ModelWarp>> sums(WeightGradient::kWarps);
    for (std::int64_t number = block; number < work.bands.count(); number += WeightGradient::kBlocks) {
      const Band band = work.bands.band(number);
      const std::vector<std::byte> shared = loaded(work, band);
      for (int w = 0; w < WeightGradient::kWarps; ++w) {
        ModelWarp warp(shared);
        work.run(warp, w, band, sums[static_cast<std::size_t>(w)]);
      }
    }
    const std::vector<std::byte> none;
    for (int w = 0; w < WeightGradient::kWarps; ++w) {
      ModelWarp warp(none);
      work.store(warp, w, block, sums[static_cast<std::size_t>(w)]);
    }
  }
  const Finish finish{partial.data(), dweights.data()};
  for (int element = 0; element < kOutputs * kWindowValues; ++element) {
    for (int lane = 0; lane < Finish::kLanes; ++lane) {
      dweights[static_cast<std::size_t>(element)] += finish.sum(element, lane);
    }
  }
  expect_equal(dweights, conv_backward_weights(sizes(), reals(x_), reals(dy_)), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Sizes, NarrowConvolution, testing::ValuesIn(kCases), [](const auto& tested) {
  const Case& c = tested.param;
  return std::to_string(c.images) + "x" + std::to_string(c.height) + "x" + std::to_string(c.width) + "by" +
         std::to_string(c.band_lines);
});

// The eight rows of a matrix that ldmatrix loads lie in different banks of 16 bytes, in x, in y and in the
// weights.
TEST(NarrowConvolutionBanks, AreAllDifferent) {
  for (int first = 0; first < 8; ++first) {
    for (int chunk = 0; chunk < kOutputChunks; ++chunk) {
      std::set<int> x, y, weights;
      for (int row = first; row < first + 8; ++row) {
        x.insert(input_place(row, chunk % kPixelChunks) / kChunkBytes % 8);
        y.insert(output_place(row, chunk) / kChunkBytes % 8);
        weights.insert(row * InputGradient::kRowBytes / kChunkBytes % 8);
      }
      EXPECT_EQ(x.size(), 8U);
      EXPECT_EQ(y.size(), 8U);
      EXPECT_EQ(weights.size(), 8U);
    }
  }
}

TEST(EvenLines, MakeAsFewBandsOfAboutOneSize) {
  EXPECT_EQ(even_lines(31, 17), 16) << "16 and 15, not 17 and 14";
  for (int height = 1; height <= 64; ++height) {
    for (int max = 1; max <= height; ++max) {
      const int lines = even_lines(height, max), bands = (height + lines - 1) / lines;
      EXPECT_LE(lines, max);
      EXPECT_EQ(bands, (height + max - 1) / max);
      EXPECT_LT(lines * bands - height, bands) << height << " in bands of at most " << max;
    }
  }
}

}  // namespace
}  // namespace headrace
