#include "headrace/pipeline/operations/random_resized_crop.h"
#include "headrace/tests/pipeline/operations/machinery/chain_fixture.h"

namespace headrace::test {
namespace {

TEST(RandomWindow, KeepsAreaAndRatioAndStaysInside) {
  const ImageSize image{.height = 375, .width = 500};
  double area_sum = 0, log_ratio_sum = 0;
  constexpr int kDraws = 4000;
  for (std::uint64_t record = 0; record < kDraws; ++record) {
    Philox random({.seed = 1, .record = record});
    const ImageWindow window = draw_window({}, image, random);
    EXPECT_GE(window.top, 0);
    EXPECT_GE(window.left, 0);
    EXPECT_LE(window.top + window.height, image.height);
    EXPECT_LE(window.left + window.width, image.width);
    const double area = static_cast<double>(window.height * window.width) / (375.0 * 500.0);
    const double ratio = static_cast<double>(window.width) / static_cast<double>(window.height);
    EXPECT_GT(area, 0.078);
    EXPECT_GT(ratio, 0.74);
    EXPECT_LT(ratio, 1.35);
    area_sum += area;
    log_ratio_sum += std::log(ratio);
  }
  // A million draws by torchvision's rule for an image of this size: large windows often do not fit.
  EXPECT_NEAR(area_sum / kDraws, 0.4328, 0.012);
  EXPECT_NEAR(log_ratio_sum / kDraws, 0.0309, 0.01);
}

TEST(RandomWindow, FollowsTheDraws) {
  // One draw that fits: the window of torchvision's formula.
  const RandomResizedCrop options{.area = {0.25F, 0.25F}, .ratio = {1, 1}};
  Philox random({.seed = 3});
  Philox same = random;
  const ImageWindow window = draw_window(options, {.height = 100, .width = 100}, random);
  same.next_u32();
  same.next_u32();
  EXPECT_EQ(window.height, 50);
  EXPECT_EQ(window.width, 50);
  EXPECT_EQ(window.top, same.below(51));
  EXPECT_EQ(window.left, same.below(51));
}

TEST(RandomWindow, FallsBackToTheCentre) {
  // Nothing fits: a very wide image, the whole height is too small for the area.
  Philox random({.seed = 3});
  const ImageWindow wide = draw_window({.area = {1, 1}}, {.height = 30, .width = 300}, random);
  EXPECT_EQ(wide.height, 30);
  EXPECT_EQ(wide.width, 40);
  EXPECT_EQ(wide.left, 130);
  const ImageWindow tall = draw_window({.area = {1, 1}}, {.height = 300, .width = 30}, random);
  EXPECT_EQ(tall.height, 40);
  EXPECT_EQ(tall.top, 130);
  const ImageWindow one = draw_window({}, {.height = 1, .width = 1}, random);
  EXPECT_EQ(one.height, 1);
  EXPECT_EQ(one.width, 1);
}

// Golden values: the windows must not change with compiler, library or processor.
TEST(RandomWindow, IsTheSameOnEveryMachine) {
  std::uint64_t sum = 0;
  for (std::uint64_t record = 0; record < 10'000; ++record) {
    Philox random({.seed = 8, .record = record});
    const ImageWindow window = draw_window({}, {.height = 375, .width = 500}, random);
    sum =
        sum * 31 + static_cast<std::uint64_t>(window.top * 7 + window.left * 5 + window.height * 3 + window.width);
  }
  EXPECT_EQ(sum, 5264798135240766094U);
}

TEST(RandomResizedCrop, EqualsCropThenResize) {
  const Image image = random_image(50, 70, 3, 2);
  for (std::uint64_t record = 0; record < 20; ++record) {
    Philox random = draws(0, record);
    const ImageWindow window = draw_window({.size = 16}, {.height = 50, .width = 70}, random);
    std::vector<std::uint8_t> cropped;
    for (std::int64_t y = 0; y < window.height; ++y) {
      for (std::int64_t x = 0; x < window.width * 3; ++x) {
        cropped.push_back(static_cast<std::uint8_t>(
            image.values[static_cast<std::size_t>(((window.top + y) * 70 + window.left) * 3 + x)]));
      }
    }
    std::vector<std::uint8_t> expected(16 * 16 * 3);
    Resampler resampler;
    resampler.plan({window.height, window.width}, {16, 16}, {.height = 16, .width = 16});
    resampler.run(cropped.data(), window.width * 3, expected.data(), 3);
    const auto actual = run_chain(random_resized_crop({.size = 16}), image, DType::kU8, record).values;
    expect_near(actual, {expected.begin(), expected.end()}, 0);
  }
}

TEST(RandomResizedCrop, DecodingOnlyTheWindowChangesNothing) {
  const Bytes encoded = encode_jpeg(make_picture(90, 120, 3, 1));
  const Operations crop = random_resized_crop({.size = 32}) | flip();
  const auto expected = run_chain(crop, decoded(encoded), DType::kU8).values;
  EXPECT_EQ(run_encoded(crop, encoded), expected);
}

}  // namespace
}  // namespace headrace::test
