#include "headrace/pipeline/operations/kernels/color_kernels.h"
#include "headrace/tests/pipeline/operations/machinery/chain_fixture.h"

namespace headrace::test {
namespace {

struct Rgb {
  double r = 0, g = 0, b = 0;
};

double clamp(double value) { return std::clamp(value, 0.0, 255.0); }
double luma_of(const Rgb& c) { return 0.299 * c.r + 0.587 * c.g + 0.114 * c.b; }

// The textbook's six sectors, there and back.
Rgb turn(const Rgb& c, double part) {
  const double largest = std::max({c.r, c.g, c.b}), smallest = std::min({c.r, c.g, c.b});
  const double chroma = largest - smallest;
  if (chroma == 0) return c;
  double hue = largest == c.r   ? std::fmod((c.g - c.b) / chroma + 6, 6)
               : largest == c.g ? (c.b - c.r) / chroma + 2
                                : (c.r - c.g) / chroma + 4;
  hue = std::fmod(hue / 6 + part + 1, 1.0) * 6;
  const int sector = static_cast<int>(hue);
  const double rest = hue - sector;
  const double falling = largest - chroma * rest, rising = largest - chroma * (1 - rest);
  switch (sector) {
    case 0: return {largest, rising, smallest};
    case 1: return {falling, largest, smallest};
    case 2: return {smallest, largest, rising};
    case 3: return {smallest, falling, largest};
    case 4: return {rising, smallest, largest};
    default: return {largest, smallest, falling};
  }
}

std::vector<float> naive_colors(const ColorPlan& plan, const Image& image) {
  std::vector<Rgb> pixels;
  for (std::size_t i = 0; i < image.values.size(); i += 3) {
    pixels.push_back({image.values[i], image.values[i + 1], image.values[i + 2]});
  }
  for (std::size_t change = 0; change < plan.count; ++change) {
    const double f = plan.changes[change].amount;
    double mean = 0;
    for (const Rgb& c : pixels) mean += luma_of(c) / static_cast<double>(pixels.size());
    for (Rgb& c : pixels) {
      const double grey = luma_of(c);
      switch (plan.changes[change].property) {
        case ColorProperty::kBrightness: c = {clamp(c.r * f), clamp(c.g * f), clamp(c.b * f)}; break;
        case ColorProperty::kContrast:
          c = {clamp(mean + (c.r - mean) * f), clamp(mean + (c.g - mean) * f), clamp(mean + (c.b - mean) * f)};
          break;
        case ColorProperty::kSaturation:
          c = {clamp(grey + (c.r - grey) * f), clamp(grey + (c.g - grey) * f), clamp(grey + (c.b - grey) * f)};
          break;
        case ColorProperty::kHue: c = turn(c, f); break;
      }
    }
  }
  std::vector<float> values;
  for (const Rgb& c : pixels) {
    for (const double v : {c.r, c.g, c.b}) values.push_back(static_cast<float>(std::floor(v + 0.5)));
  }
  return values;
}

// Noise, and the colours at the corners and edges of the cube, where the hue's cases meet.
Image colourful(std::int64_t height, std::int64_t width, std::uint64_t seed) {
  Image image = random_image(height, width, 3, seed);
  const std::array<float, 4> levels = {0, 1, 128, 255};
  for (std::size_t i = 0; i < std::min<std::size_t>(64, image.values.size() / 3); ++i) {
    image.values[3 * i] = levels[i % 4];
    image.values[3 * i + 1] = levels[i / 4 % 4];
    image.values[3 * i + 2] = levels[i / 16];
  }
  return image;
}

TEST(ColorJitter, EqualsATextbookImplementation) {
  const ColorJitter all{.brightness = 0.6F, .contrast = 0.8F, .saturation = 1.5F, .hue = 0.5F};
  const ColorJitter variants[] = {
      all,           {.brightness = 0.9F},           {.contrast = 0.9F}, {.saturation = 2},
      {.hue = 0.5F}, {.contrast = 0.4F, .hue = 0.1F}};
  for (const ColorJitter& options : variants) {
    for (std::uint64_t record = 0; record < 24; ++record) {
      const Image image = colourful(5 + static_cast<std::int64_t>(record), 31, record);
      Philox random = draws(0, record);
      const ColorPlan plan = draw_colors(options, random);
      const std::vector<float> expected = naive_colors(plan, image);
      expect_near(run_chain(color_jitter(options), image, DType::kU8, record).values, expected, 1);
    }
  }
}

TEST(ColorJitter, ChangesNothingWhereAllIsZero) {
  for (const std::int64_t width : {1, 7, 256, 300}) {
    const Image image = random_image(3, width, 3, 5);
    expect_near(run_chain(color_jitter({}), image, DType::kU8).values, image.values, 0);
  }
}

TEST(ColorJitter, DrawsWithinItsRangesAndEveryOrder) {
  const ColorJitter options{.brightness = 0.4F, .contrast = 1.5F, .saturation = 0.2F, .hue = 0.1F};
  std::array<double, 4> sum{}, low{9, 9, 9, 9}, high{-9, -9, -9, -9};
  std::vector<std::array<int, 4>> orders;
  constexpr int kDraws = 4000;
  for (std::uint64_t record = 0; record < kDraws; ++record) {
    Philox random({.seed = 1, .record = record});
    const ColorPlan plan = draw_colors(options, random);
    ASSERT_EQ(plan.count, 4U);
    std::array<int, 4> order{};
    for (std::size_t i = 0; i < 4; ++i) {
      const auto property = static_cast<std::size_t>(plan.changes[i].property);
      order[i] = static_cast<int>(property);
      sum[property] += plan.changes[i].amount;
      low[property] = std::min<double>(low[property], plan.changes[i].amount);
      high[property] = std::max<double>(high[property], plan.changes[i].amount);
    }
    if (std::ranges::find(orders, order) == orders.end()) orders.push_back(order);
  }
  EXPECT_EQ(orders.size(), 24U);
  const std::array<double, 4> from = {0.6, 0, 0.8, -0.1}, to = {1.4, 2.5, 1.2, 0.1};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_GE(low[i], from[i] - 1e-6);
    EXPECT_LE(high[i], to[i] + 1e-6);
    EXPECT_NEAR(sum[i] / kDraws, (from[i] + to[i]) / 2, (to[i] - from[i]) * 0.02);
    EXPECT_GT(high[i] - low[i], (to[i] - from[i]) * 0.99);
  }
}

TEST(ColorJitter, LeavesOutWhatIsZeroWithoutMovingTheOtherDraws) {
  Philox one({.seed = 1, .record = 3}), two({.seed = 1, .record = 3});
  const ColorPlan all = draw_colors({.brightness = 0.5F, .contrast = 0.5F, .saturation = 0.5F, .hue = 0.2F}, one);
  const ColorPlan only = draw_colors({.saturation = 0.5F}, two);
  ASSERT_EQ(only.count, 1U);
  const auto same = std::ranges::find(all.changes, ColorProperty::kSaturation, &ColorChange::property);
  EXPECT_EQ(same->amount, only.changes[0].amount);
}

TEST(ColorJitter, LeavesSomeImagesAloneWithoutMovingTheOtherDraws) {
  const ColorJitter all{.brightness = 0.6F, .hue = 0.3F};
  ColorJitter some = all;
  some.probability = 0.4F;
  int changed = 0;
  for (std::uint64_t record = 0; record < 60; ++record) {
    const Image image = random_image(5, 7, 3, record);
    const auto values = run_chain(color_jitter(some), image, DType::kU8, record).values;
    const auto jittered = run_chain(color_jitter(all), image, DType::kU8, record).values;
    EXPECT_TRUE(values == image.values || values == jittered);
    changed += values != image.values ? 1 : 0;
  }
  EXPECT_GT(changed, 10);
  EXPECT_LT(changed, 40);
}

// The bits must not change with compiler, library or processor.
TEST(ColorJitter, IsTheSameOnEveryMachine) {
  std::uint64_t sum = 0;
  const ColorJitter options{.brightness = 0.6F, .contrast = 0.8F, .saturation = 1.5F, .hue = 0.5F};
  for (std::uint64_t record = 0; record < 50; ++record) {
    for (const float value :
         run_chain(color_jitter(options), colourful(19, 23, record), DType::kU8, record).values) {
      sum = sum * 31 + static_cast<std::uint64_t>(value);
    }
  }
  EXPECT_EQ(sum, 784790530754038937U);
}

}  // namespace
}  // namespace headrace::test
