#include "headrace/tests/pipeline/operations/machinery/chain_fixture.h"

namespace headrace::test {
namespace {

Operations rotation_by(float degrees, Interpolation interpolation = Interpolation::kNearest) {
  return random_rotation({.degrees = {degrees, degrees}, .interpolation = interpolation});
}

// The column right of the middle becomes the row above it.
Image naive_quarter(const Image& image) {
  Image out = image;
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x < image.width; ++x) {
      for (std::int64_t c = 0; c < image.channels; ++c) out.at(y, x, c) = image.at(x, image.height - 1 - y, c);
    }
  }
  return out;
}

TEST(RandomRotation, TurnsCounterClockwise) {
  for (const std::int64_t side : {4, 8, 31}) {
    for (const std::int64_t channels : {1, 3, 4}) {
      const Image image = random_image(side, side, channels, 4);
      for (const Interpolation how : {Interpolation::kNearest, Interpolation::kBilinear}) {
        const Image once = naive_quarter(image), twice = naive_quarter(once), thrice = naive_quarter(twice);
        expect_near(run_chain(rotation_by(90, how), image, DType::kU8).values, once.values, 0);
        expect_near(run_chain(rotation_by(180, how), image, DType::kU8).values, twice.values, 0);
        expect_near(run_chain(rotation_by(-90, how), image, DType::kU8).values, thrice.values, 0);
        expect_near(run_chain(rotation_by(360, how), image, DType::kU8).values, image.values, 0);
      }
    }
  }
}

TEST(RandomRotation, ShowsTheFillBeyondTheImage) {
  Image image = random_image(20, 20, 3, 1);
  std::ranges::fill(image.values, 200.0F);
  const Operations chain =
      random_rotation({.degrees = {45, 45}, .interpolation = Interpolation::kBilinear, .fill = {1, 2, 3}});
  const Image turned{
      .height = 20, .width = 20, .channels = 3, .values = run_chain(chain, image, DType::kU8).values};
  for (std::int64_t c = 0; c < 3; ++c) {
    EXPECT_EQ(turned.at(0, 0, c), static_cast<float>(c + 1));
    EXPECT_EQ(turned.at(19, 0, c), static_cast<float>(c + 1));
    EXPECT_EQ(turned.at(10, 10, c), 200);
    EXPECT_EQ(turned.at(0, 10, c), 200) << "the corner of the square";
  }
}

TEST(RandomRotation, DrawsTheAngleAfterWhetherToTurn) {
  const RandomRotation options{.degrees = {-40, 70}, .probability = 0.5F};
  int turned = 0;
  for (std::uint64_t record = 0; record < 40; ++record) {
    const Image image = random_image(13, 17, 3, record);
    Philox random = draws(0, record);
    const bool drawn = random.uniform() < 0.5F;
    const float angle = -40 + 110 * random.uniform();
    const auto expected = drawn ? run_chain(rotation_by(angle), image, DType::kU8).values : image.values;
    const auto values = run_chain(random_rotation(options), image, DType::kU8, record).values;
    std::size_t other = 0;  // an angle in float is not that in double
    for (std::size_t i = 0; i < values.size(); ++i) other += values[i] != expected[i] ? 1 : 0;
    EXPECT_LE(other, 6U);
    turned += drawn ? 1 : 0;
  }
  EXPECT_GT(turned, 10);
  EXPECT_LT(turned, 30);
}

// The bits must not change with compiler, library or processor.
TEST(RandomRotation, IsTheSameOnEveryMachine) {
  for (const auto& [how, expected] : {std::pair{Interpolation::kNearest, std::uint64_t{549734115715529864U}},
                                      std::pair{Interpolation::kBilinear, std::uint64_t{8728363231814504396U}}}) {
    std::uint64_t sum = 0;
    for (std::uint64_t record = 0; record < 30; ++record) {
      const Image image = random_image(19, 23, 3, record);
      const Operations chain = random_rotation({.degrees = {-180, 180}, .interpolation = how});
      for (const float value : run_chain(chain, image, DType::kU8, record).values) {
        sum = sum * 31 + static_cast<std::uint64_t>(value);
      }
    }
    EXPECT_EQ(sum, expected);
  }
}

}  // namespace
}  // namespace headrace::test
