// Steps over pixels, resampling, and the memory for it.
#include "headrace/pipeline/operations/machinery/pixel_step.h"
#include "headrace/pipeline/operations/machinery/memory_budget.h"
#include "headrace/pipeline/operations/machinery/resampler.h"
#include "headrace/tests/pipeline/operations/machinery/chain_fixture.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

const std::vector<float> kPixelMean{0.5F, 0.4F, 0.3F};
const std::vector<float> kPixelStd{0.2F, 0.3F, 0.4F};

// The formula of struct Normalize, to the bit.
Image naive_normalize(Image in, double unit) {
  for (std::size_t i = 0; i < in.values.size(); ++i) {
    const std::size_t c = i % 3;
    const auto scale = static_cast<float>(1 / (unit * static_cast<double>(kPixelStd[c])));
    const auto shift = static_cast<float>(-static_cast<double>(kPixelMean[c]) / static_cast<double>(kPixelStd[c]));
    const float product = in.values[i] * scale;
    in.values[i] = product + shift;
  }
  return in;
}

// The random crop and flip that operations 0 and 1 draw.
Image naive_augment(const Image& in, const PadCrop& crop, std::uint64_t record) {
  Philox place = draws(0, record);
  const std::int64_t top = place.below(static_cast<std::uint32_t>(in.height + 2 * crop.pad - crop.size + 1));
  const std::int64_t left = place.below(static_cast<std::uint32_t>(in.width + 2 * crop.pad - crop.size + 1));
  const Image cropped = naive_crop(in, top - crop.pad, left - crop.pad, crop.size, crop.padding);
  return draws(1, record).uniform() < 0.5F ? naive_mirror(cropped) : cropped;
}

TEST(PixelStep, EqualsTheOperationsDoneOneByOne) {
  // Sizes on both sides of the vector width, square and not.
  for (const auto& [height, width, size] : {std::array{32, 32, 32}, {9, 14, 8}, {40, 37, 35}, {17, 33, 16}}) {
    for (Padding padding : {Padding::kZero, Padding::kReflect}) {
      for (std::uint64_t record = 0; record < 12; ++record) {
        const Image image = random_image(height, width, 3, record);
        const PadCrop crop{.size = size, .pad = 4, .padding = padding};
        const Operations augment = pad_crop(size, 4, padding) | flip();
        const Image expected = naive_augment(image, crop, record);
        expect_near(run_chain(augment, image, DType::kU8, record).values, expected.values, 0);
        expect_near(run_chain(augment, image, DType::kF32, record).values, expected.values, 0);

        const Image normal = naive_normalize(expected, 255);
        const Operations to_float = augment | normalize(kPixelMean, kPixelStd);
        expect_near(run_chain(to_float, image, DType::kU8, record).values, normal.values, 0);
        const auto planes =
            run_chain(to_float | to_layout(ImageLayout::kChannelsFirst), image, DType::kU8, record);
        EXPECT_EQ(planes.field.shape, (Shape{3, size, size}));
        expect_near(planes.values, naive_planes(normal), 0);
        const Image of_floats = naive_normalize(expected, 1);
        expect_near(run_chain(to_float, image, DType::kF32, record).values, of_floats.values, 0);
      }
    }
  }
}

TEST(PixelStep, HandlesAnyNumberOfChannels) {
  for (std::int64_t channels : {1, 2, 4, 5}) {
    const Image image = random_image(9, 19, channels, 5);
    Image scaled = naive_mirror(image);
    for (float& value : scaled.values) value = (value / 255 - 0.25F) / 0.5F;
    const Operations operations = flip(1) | normalize({0.25F}, {0.5F});
    expect_near(run_chain(operations, image, DType::kU8).values, scaled.values, 1e-6F);
    expect_near(run_chain(operations | to_layout(ImageLayout::kChannelsFirst), image, DType::kU8).values,
                naive_planes(scaled), 1e-6F);
  }
}

TEST(PixelStep, RefusesImagesThatTurnOutTooSmall) {
  const Field field{.name = "image", .dtype = DType::kU8, .shape = {Shape::kDynamic, Shape::kDynamic, 3}};
  Scratch scratch;
  QuietProbe probe;
  const std::vector<std::byte> bytes(3 * 4 * 3);
  for (const Operations& operations : {center_crop(4), pad_crop(12, 4), pad_crop(4, 3, Padding::kReflect)}) {
    const auto stages = planned(operations);
    const Chain chain(field, stages);
    std::vector<std::byte> row(static_cast<std::size_t>(chain.output().shape.elements()));
    EXPECT_THROW(chain.run_into({.bytes = bytes, .shape = {3, 4, 3}}, {.scratch = &scratch, .probe = &probe}, row),
                 Error);
  }
}

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
        resampler.plan(in, out, {.height = out.height, .width = out.width});
        resampler.run(from.data(), in.width * channels, to.data(), channels);
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
  resampler.plan({31, 47}, {31, 47}, {.height = 31, .width = 47});
  resampler.run(from.data(), 47 * 3, to.data(), 3);
  EXPECT_EQ(to, from);
}

TEST(MemoryBudget, ChargesUpToItsLimitAndNotAByteMore) {
  MemoryBudget budget("memory_budget_bytes", 100);
  EXPECT_TRUE(budget.try_charge(60));
  EXPECT_FALSE(budget.try_charge(41));
  EXPECT_FALSE(budget.try_charge(~std::uint64_t{0}));
  EXPECT_EQ(budget.used(), 60);
  EXPECT_TRUE(budget.try_charge(40));
  budget.release(100);
  EXPECT_EQ(budget.used(), 0);
}

TEST(MemoryBudget, SaysWhatDidNotFitAndHowMuchWould) {
  MemoryBudget budget("pinned_budget_bytes", 100);
  budget.charge(70, "a batch");
  const Error error = error_of([&] { budget.charge(50, "a batch"); });
  EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
  EXPECT_THAT(error.message(),
              HasSubstr("a batch needs 50 bytes more; 70 of the 100 bytes of pinned_budget_bytes"));
  EXPECT_THAT(error.hint(), HasSubstr("120 or more"));
}

TEST(MemoryBudget, WithoutALimitCountsOnly) {
  MemoryBudget budget("memory_budget_bytes", 0);
  budget.charge(std::uint64_t{1} << 50, "a batch");
  EXPECT_EQ(budget.used(), std::uint64_t{1} << 50);
}

TEST(MemoryBudget, HoldsAgainstManyThreads) {
  constexpr std::uint64_t kLimit = 1000;
  MemoryBudget budget("memory_budget_bytes", kLimit);
  std::atomic<bool> exceeded{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 20'000; ++round) {
        if (!budget.try_charge(300)) continue;
        if (budget.used() > kLimit) exceeded = true;
        budget.release(300);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(exceeded);
  EXPECT_EQ(budget.used(), 0);
}

TEST(ChargedBytes, HoldsMoreAndLessAndGivesAllBack) {
  MemoryBudget budget("memory_budget_bytes", 100);
  {
    ChargedBytes held(budget);
    held.hold(80, "scratch");
    EXPECT_EQ(budget.used(), 80);
    held.hold(30, "scratch");
    EXPECT_EQ(budget.used(), 30);
    EXPECT_THROW(held.hold(101, "scratch"), Error);
    EXPECT_EQ(held.bytes(), 30);
    ChargedBytes moved = std::move(held);
    EXPECT_EQ(moved.bytes(), 30);
    EXPECT_EQ(budget.used(), 30);
  }
  EXPECT_EQ(budget.used(), 0);
}

}  // namespace
}  // namespace headrace::test
