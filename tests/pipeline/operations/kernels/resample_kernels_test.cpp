#include "headrace/pipeline/operations/kernels/resample_kernels.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

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

TEST(ResampleKernels, PixelsAreThePortableOnesBitForBit) {
  Philox random({.seed = 2});
  for (const std::int64_t taps : {1, 2, 3, 5, 23}) {
    for (const std::int64_t pixels : {1, 2, 3, 4, 5, 31, 64}) {
      const std::int64_t input = taps + 50;
      std::vector<FixedLevel> row(static_cast<std::size_t>(3 * input + kRowSlack), FixedLevel{32640});
      for (std::int64_t i = 0; i < 3 * input; ++i) {
        row[static_cast<std::size_t>(i)] = static_cast<FixedLevel>(byte_of(random) << kLevelBits);
      }
      std::vector<std::int32_t> first;
      for (std::int64_t x = 0; x < pixels; ++x) first.push_back(static_cast<std::int32_t>(random.below(51)));
      std::vector<FixedWeight> paired;
      pair_weights(weights_of(pixels, taps, random), taps, paired);
      std::vector<std::uint8_t> fast(static_cast<std::size_t>(3 * pixels + kRowSlack));
      std::vector<std::uint8_t> plain(fast.size());
      resample_kernels().blend_pixels(row.data(), first.data(), paired.data(), taps, fast.data(), pixels);
      portable_resample_kernels().blend_pixels(row.data(), first.data(), paired.data(), taps, plain.data(),
                                               pixels);
      fast.resize(static_cast<std::size_t>(3 * pixels));
      plain.resize(fast.size());
      ASSERT_EQ(fast, plain) << taps << " taps, " << pixels << " pixels";
    }
  }
}

}  // namespace
}  // namespace headrace::test
