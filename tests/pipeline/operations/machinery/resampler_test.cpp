#include "headrace/pipeline/operations/machinery/resampler.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

// The triangle filter of one axis in double: weight of input pixel k for output pixel i.
double weight(std::int64_t i, std::int64_t k, std::int64_t input, std::int64_t output) {
  const double scale = static_cast<double>(input) / static_cast<double>(output);
  const double support = std::max(1.0, scale);
  const double center = (static_cast<double>(i) + 0.5) * scale;
  const auto value = [&](std::int64_t at) {
    return std::max(0.0, 1 - std::abs(static_cast<double>(at) + 0.5 - center) / support);
  };
  double sum = 0;
  for (std::int64_t at = 0; at < input; ++at) sum += value(at);
  return value(k) / sum;
}

std::vector<double> reference(const std::vector<std::uint8_t>& from, const ImageSize& in, const ImageSize& out,
                              std::int64_t channels) {
  std::vector<double> tall(static_cast<std::size_t>(in.height * out.width * channels));
  for (std::int64_t x = 0; x < out.width; ++x) {
    for (std::int64_t k = 0; k < in.width; ++k) {
      const double w = weight(x, k, in.width, out.width);
      for (std::int64_t y = 0; w > 0 && y < in.height; ++y) {
        for (std::int64_t c = 0; c < channels; ++c) {
          tall[static_cast<std::size_t>((y * out.width + x) * channels + c)] +=
              w * from[static_cast<std::size_t>((y * in.width + k) * channels + c)];
        }
      }
    }
  }
  const std::int64_t row = out.width * channels;
  std::vector<double> result(static_cast<std::size_t>(out.height * row));
  for (std::int64_t y = 0; y < out.height; ++y) {
    for (std::int64_t k = 0; k < in.height; ++k) {
      const double w = weight(y, k, in.height, out.height);
      for (std::int64_t i = 0; w > 0 && i < row; ++i) {
        result[static_cast<std::size_t>(y * row + i)] += w * tall[static_cast<std::size_t>(k * row + i)];
      }
    }
  }
  return result;
}

std::vector<std::uint8_t> noise(std::int64_t bytes) {
  std::vector<std::uint8_t> values(static_cast<std::size_t>(bytes));
  Philox random({.seed = 4});
  // Runs of black and white among noise reach both ends of the range.
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::uint8_t>(i % 97 < 20 ? 255 : i % 89 < 20 ? 0 : random.below(256));
  }
  return values;
}

TEST(Resampler, StaysWithinOneLevelOfExactArithmetic) {
  Resampler resampler;
  const ImageSize sizes[] = {{1, 1}, {2, 3}, {7, 5}, {40, 61}, {64, 64}, {90, 33}, {150, 201}};
  for (const ImageSize& in : sizes) {
    for (const ImageSize& out : {ImageSize{24, 24}, ImageSize{1, 1}, ImageSize{64, 64}, ImageSize{17, 70}}) {
      for (std::int64_t channels : {1, 3, 4}) {
        const auto from = noise(in.height * in.width * channels);
        std::vector<std::uint8_t> to(static_cast<std::size_t>(out.height * out.width * channels));
        resampler.resize(from.data(), in, to.data(), out, channels);
        const auto expected = reference(from, in, out, channels);
        for (std::size_t i = 0; i < to.size(); ++i) {
          ASSERT_LE(std::abs(to[i] - expected[i]), 0.75)
              << in.height << "x" << in.width << " -> " << out.height << "x" << out.width << ", " << channels
              << " channels, at " << i;
        }
      }
    }
  }
}

TEST(Resampler, KeepsAnImageOfTheRightSize) {
  Resampler resampler;
  const auto from = noise(31 * 47 * 3);
  std::vector<std::uint8_t> to(from.size());
  resampler.resize(from.data(), {31, 47}, to.data(), {31, 47}, 3);
  EXPECT_EQ(to, from);
}

}  // namespace
}  // namespace headrace::test
