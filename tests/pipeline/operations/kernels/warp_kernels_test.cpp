// Kernels that resample and warp.
#include "headrace/pipeline/operations/kernels/warp_kernels.h"
#include "headrace/pipeline/operations/kernels/portable_math.h"
#include "headrace/pipeline/operations/kernels/resample_kernels.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

struct WarpedPicture {
  std::int64_t height = 0, width = 0;
  std::size_t channels = 1;
  std::vector<std::uint8_t> levels = {};

  // Beyond the picture: the fill.
  double level(std::int64_t y, std::int64_t x, std::size_t c, const std::vector<std::uint8_t>& fill) const {
    if (y < 0 || y >= height || x < 0 || x >= width) return fill[c];
    return levels[static_cast<std::size_t>(y * width + x) * channels + c];
  }
};

WarpedPicture warp_noise(std::int64_t height, std::int64_t width, std::size_t channels) {
  WarpedPicture picture{.height = height, .width = width, .channels = channels};
  Philox random({.seed = 3});
  picture.levels.resize(static_cast<std::size_t>(height * width) * channels);
  for (std::uint8_t& level : picture.levels) level = static_cast<std::uint8_t>(random.next_u32() >> 24);
  return picture;
}

std::vector<std::uint8_t> warped(const WarpedPicture& picture, const AffineMap& source,
                                 const std::vector<std::uint8_t>& fill, void (*kernel)(const WarpWork&)) {
  std::vector<std::uint8_t> result(picture.levels.size());
  kernel({.from = reinterpret_cast<const std::byte*>(picture.levels.data()),
          .height = picture.height,
          .width = picture.width,
          .pixel_bytes = picture.channels,
          .source = source,
          .fill = reinterpret_cast<const std::byte*>(fill.data()),
          .to = reinterpret_cast<std::byte*>(result.data())});
  return result;
}

std::vector<AffineMap> warp_maps(double width, double height) {
  const Point middle{.x = width / 2, .y = height / 2};
  return {{},
          {.x0 = 3, .y0 = -2},
          {.x0 = 0.3, .y0 = 1e9},
          {.xx = -1, .x0 = width},
          source_map({.degrees = 17, .center = middle}),
          source_map({.degrees = -200, .scale = 0.4, .center = middle}),
          source_map({.degrees = 3, .move_x = 4, .move_y = -7, .scale = 2.7, .shear_x = 30, .shear_y = -12})};
}

TEST(WarpKernels, TakeTheNearestPixel) {
  for (const std::size_t channels : {1U, 2U, 3U, 4U, 8U, 12U}) {
    for (const std::int64_t width : {5, 300}) {
      const WarpedPicture picture = warp_noise(23, width, channels);
      std::vector<std::uint8_t> fill;
      for (std::size_t c = 0; c < channels; ++c) fill.push_back(static_cast<std::uint8_t>(7 * c + 1));
      for (const AffineMap& map : warp_maps(static_cast<double>(width), 23)) {
        const auto result = warped(picture, map, fill, warp_nearest);
        for (std::int64_t y = 0; y < 23; ++y) {
          for (std::int64_t x = 0; x < width; ++x) {
            const Point from = map({.x = static_cast<double>(x) + 0.5, .y = static_cast<double>(y) + 0.5});
            const auto row = static_cast<std::int64_t>(std::floor(from.y));
            const auto column = static_cast<std::int64_t>(std::floor(from.x));
            for (std::size_t c = 0; c < channels; ++c) {
              ASSERT_EQ(result[static_cast<std::size_t>(y * width + x) * channels + c],
                        picture.level(row, column, c, fill));
            }
          }
        }
      }
    }
  }
}

TEST(WarpKernels, BlendTheFourAround) {
  for (const std::size_t channels : {1U, 2U, 3U, 4U}) {
    for (const std::int64_t width : {5, 300}) {
      const WarpedPicture picture = warp_noise(23, width, channels);
      const std::vector<std::uint8_t> fill{9, 200, 0, 255};
      for (const AffineMap& map : warp_maps(static_cast<double>(width), 23)) {
        const auto result = warped(picture, map, fill, warp_bilinear);
        for (std::int64_t y = 0; y < 23; ++y) {
          for (std::int64_t x = 0; x < width; ++x) {
            const Point from = map({.x = static_cast<double>(x) + 0.5, .y = static_cast<double>(y) + 0.5});
            const double left = std::floor(from.x - 0.5), top = std::floor(from.y - 0.5);
            const double right = from.x - 0.5 - left, down = from.y - 0.5 - top;
            const auto row = static_cast<std::int64_t>(top), column = static_cast<std::int64_t>(left);
            for (std::size_t c = 0; c < channels; ++c) {
              const double above = picture.level(row, column, c, fill) * (1 - right) +
                                   picture.level(row, column + 1, c, fill) * right;
              const double below = picture.level(row + 1, column, c, fill) * (1 - right) +
                                   picture.level(row + 1, column + 1, c, fill) * right;
              ASSERT_NEAR(result[static_cast<std::size_t>(y * width + x) * channels + c],
                          above * (1 - down) + below * down, 0.75);
            }
          }
        }
      }
    }
  }
}

TEST(WarpKernels, AnIdentityChangesNothing) {
  const WarpedPicture picture = warp_noise(9, 31, 3);
  const std::vector<std::uint8_t> fill{1, 2, 3};
  EXPECT_EQ(warped(picture, {}, fill, warp_nearest), picture.levels);
  EXPECT_EQ(warped(picture, {}, fill, warp_bilinear), picture.levels);
}

TEST(AffineMap, TurnsClockwiseThenScalesAndMoves) {
  const Point middle{.x = 10, .y = 20};
  const AffineMap quarter = inverse_of(source_map({.degrees = 90, .center = middle}));
  const Point below = quarter({.x = 13, .y = 20});  // right of the middle
  EXPECT_DOUBLE_EQ(below.x, 10);
  EXPECT_DOUBLE_EQ(below.y, 23);
  const AffineMap moved = inverse_of(source_map({.move_x = 2, .move_y = 3, .scale = 2, .center = middle}));
  const Point there = moved({.x = 11, .y = 20});
  EXPECT_DOUBLE_EQ(there.x, 14);
  EXPECT_DOUBLE_EQ(there.y, 23);
}

TEST(AffineMap, GoesThereAndBack) {
  const AffineMap map = source_map(
      {.degrees = 33, .move_x = 4, .move_y = -5, .scale = 1.7, .shear_x = 20, .shear_y = -10, .center = {5, 6}});
  const Point back = inverse_of(map)(map({.x = 3, .y = -8}));
  EXPECT_NEAR(back.x, 3, 1e-12);
  EXPECT_NEAR(back.y, -8, 1e-12);
}

TEST(PortableMath, SineAndCosineAreThose) {
  for (double degrees = -800; degrees < 800; degrees += 0.37) {
    const double radians = degrees * std::numbers::pi / 180;
    const SineCosine both = sine_cosine(degrees);
    ASSERT_NEAR(both.sine, std::sin(radians), 1e-14) << degrees;
    ASSERT_NEAR(both.cosine, std::cos(radians), 1e-14) << degrees;
  }
  for (int quarter = -9; quarter < 9; ++quarter) {
    const SineCosine both = sine_cosine(90.0 * quarter);
    EXPECT_EQ(std::abs(both.sine), quarter % 2 == 0 ? 0 : 1);
    EXPECT_EQ(std::abs(both.cosine), quarter % 2 == 0 ? 1 : 0);
  }
}

// Weights that sum to the whole, unevenly; sometimes all in one.
std::vector<FixedWeight> weights_of(std::int64_t pixels, std::int64_t taps, Philox& random) {
  std::vector<FixedWeight> weights;
  for (std::int64_t x = 0; x < pixels; ++x) {
    std::int32_t left = kWholeWeight;
    for (std::int64_t k = 0; k + 1 < taps; ++k) {
      const auto part = static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(left + 1)));
      weights.push_back(static_cast<FixedWeight>(part));
      left -= part;
    }
    weights.push_back(static_cast<FixedWeight>(left));
  }
  return weights;
}

std::uint8_t byte_of(Philox& random) {
  const std::uint32_t value = random.below(512);
  return static_cast<std::uint8_t>(value < 256 ? value : value < 384 ? 255 : 0);
}

TEST(ResampleKernels, RowsAreThePortableOnesBitForBit) {
  Philox random({.seed = 1});
  for (const std::int64_t taps : {1, 2, 3, 7, 40}) {
    for (const std::int64_t count : {1, 15, 16, 17, 63, 64, 65, 127, 300}) {
      std::vector<std::uint8_t> from(static_cast<std::size_t>(taps * count));
      for (std::uint8_t& value : from) value = byte_of(random);
      const auto weights = weights_of(1, taps, random);
      std::vector<FixedLevel> fast(static_cast<std::size_t>(count)), plain(static_cast<std::size_t>(count));
      resample_kernels().blend_rows(from.data(), count, weights.data(), taps, fast.data(), count);
      portable_resample_kernels().blend_rows(from.data(), count, weights.data(), taps, plain.data(), count);
      ASSERT_EQ(fast, plain) << taps << " taps, " << count << " elements";
    }
  }
}

// `reach`: how far apart the inputs of ten pixels begin; 51: anywhere.
TEST(ResampleKernels, PixelsAreThePortableOnesBitForBit) {
  Philox random({.seed = 2});
  std::set<std::int64_t> groups;
  for (const auto& [taps, reach] :
       {std::pair{1, 51}, {2, 0}, {3, 10}, {3, 18}, {3, 19}, {3, 30}, {5, 16}, {23, 9}}) {
    for (const std::int64_t pixels : {1, 2, 3, 4, 5, 9, 10, 11, 31, 64}) {
      const std::int64_t input = taps + 50;
      std::vector<FixedLevel> row(static_cast<std::size_t>(3 * input + kRowSlack), FixedLevel{32640});
      for (std::int64_t i = 0; i < 3 * input; ++i) {
        row[static_cast<std::size_t>(i)] = static_cast<FixedLevel>(byte_of(random) << kLevelBits);
      }
      std::vector<std::int32_t> first;
      for (std::int64_t x = 0; x < pixels; ++x) {
        first.push_back(static_cast<std::int32_t>(reach > 50 ? random.below(51) : x * reach / 9 % 51));
      }
      PixelPlan fast_plan, plain_plan;
      const auto weights = weights_of(pixels, taps, random);
      resample_kernels().plan_pixels(first, weights, fast_plan);
      portable_resample_kernels().plan_pixels(first, weights, plain_plan);
      std::vector<std::uint8_t> fast(static_cast<std::size_t>(3 * pixels + kRowSlack));
      std::vector<std::uint8_t> plain(fast.size());
      resample_kernels().blend_pixels(row.data(), fast_plan, fast.data(), pixels);
      portable_resample_kernels().blend_pixels(row.data(), plain_plan, plain.data(), pixels);
      fast.resize(static_cast<std::size_t>(3 * pixels));
      plain.resize(fast.size());
      ASSERT_EQ(fast, plain) << taps << " taps, " << pixels << " pixels, " << fast_plan.group << " a vector";
      groups.insert(fast_plan.group);
    }
  }
#if defined(__x86_64__)
  const bool wide = __builtin_cpu_supports("avx512bw") != 0;
#else
  const bool wide = false;
#endif
  EXPECT_EQ(groups, wide ? (std::set<std::int64_t>{2, 5, 10}) : std::set<std::int64_t>{2});
}

}  // namespace
}  // namespace headrace::test
