// rand_augment() and trivial_augment_wide().
#include "headrace/pipeline/operations/machinery/augmentation.h"
#include "headrace/tests/pipeline/operations/machinery/chain_fixture.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

constexpr AugmentationSpace kSpace{.shear = 0.3,
                                   .translate_numerator = 150,
                                   .translate_denominator = 331,
                                   .degrees = 30,
                                   .factor = 0.9,
                                   .bits = 4};

TEST(Augmentations, AreDrawnAlikeWithEitherSign) {
  std::array<int, kAugmentations> counts{}, negative{};
  constexpr int kDraws = 14000;
  for (std::uint64_t record = 0; record < kDraws; ++record) {
    Philox random({.seed = 3, .record = record});
    const Augmentation drawn = draw_augmentation(kSpace, 9, 31, {.height = 331, .width = 662}, random);
    const auto kind = static_cast<std::size_t>(drawn.kind);
    ++counts[kind];
    negative[kind] += drawn.amount < 0 ? 1 : 0;
    const std::array<double, kAugmentations> amounts{0,    0.09, 0.09, 90, 45,    9, 0.27,
                                                     0.27, 0.27, 0.27, 7,  178.5, 0, 0};
    ASSERT_NEAR(std::abs(drawn.amount), amounts[kind], 1e-9) << kind;
  }
  for (std::size_t kind = 0; kind < kAugmentations; ++kind) {
    EXPECT_NEAR(counts[kind], kDraws / kAugmentations, 150) << kind;
    const bool is_signed = kind >= 1 && kind <= 9;
    EXPECT_NEAR(negative[kind], is_signed ? counts[kind] / 2 : 0, is_signed ? 80 : 0) << kind;
  }
}

std::vector<float> after_augmentation(const Image& image, const Augmentation& augmentation) {
  const std::vector<std::uint8_t> from(image.values.begin(), image.values.end());
  std::vector<std::uint8_t> to(from.size());
  augment(augmentation, augmentation_style({9.0F}, Interpolation::kNearest),
          {.from = from.data(), .height = image.height, .width = image.width, .channels = 3, .to = to.data()});
  return {to.begin(), to.end()};
}

TEST(Augmentations, ShearAndMoveFromTheCorner) {
  const Image image = random_image(12, 15, 3, 1);
  for (const double amount : {-3.0, 5.0}) {
    Image right = image, down = image;
    for (std::int64_t y = 0; y < 12; ++y) {
      for (std::int64_t x = 0; x < 15; ++x) {
        const auto column = x - static_cast<std::int64_t>(amount), row = y - static_cast<std::int64_t>(amount);
        for (std::int64_t c = 0; c < 3; ++c) {
          right.at(y, x, c) = column >= 0 && column < 15 ? image.at(y, column, c) : 9;
          down.at(y, x, c) = row >= 0 && row < 12 ? image.at(row, x, c) : 9;
        }
      }
    }
    expect_near(after_augmentation(image, {AugmentationKind::kTranslateX, amount}), right.values, 0);
    expect_near(after_augmentation(image, {AugmentationKind::kTranslateY, amount}), down.values, 0);
  }
  Image sheared = image;
  for (std::int64_t y = 0; y < 12; ++y) {
    for (std::int64_t x = 0; x < 15; ++x) {
      const auto from = static_cast<std::int64_t>(
          std::floor(static_cast<double>(x) + 0.5 + 0.3 * (static_cast<double>(y) + 0.5)));
      for (std::int64_t c = 0; c < 3; ++c) sheared.at(y, x, c) = from < 15 ? image.at(y, from, c) : 9;
    }
  }
  expect_near(after_augmentation(image, {AugmentationKind::kShearX, 0.3}), sheared.values, 0);
}

TEST(RandAugment, DoesWhatItDrawsOneAfterAnother) {
  std::set<AugmentationKind> seen;
  for (std::uint64_t record = 0; record < 60; ++record) {
    Image image = random_image(12, 15, 3, record);
    const Image before = image;
    Philox random = draws(0, record);
    random.uniform();
    for (int i = 0; i < 3; ++i) {
      const Augmentation drawn = draw_augmentation(kSpace, 20, 31, {.height = 12, .width = 15}, random);
      seen.insert(drawn.kind);
      image.values = after_augmentation(image, drawn);
    }
    const Operations chain = rand_augment({.operations = 3, .magnitude = 20, .fill = {9}});
    expect_near(run_chain(chain, before, DType::kU8, record).values, image.values, 0);
  }
  EXPECT_EQ(seen.size(), kAugmentations);
}

TEST(TrivialAugmentWide, DrawsTheMagnitudeToo) {
  constexpr AugmentationSpace kWide{.shear = 0.99,
                                    .translate_numerator = 32,
                                    .translates_pixels = true,
                                    .degrees = 135,
                                    .factor = 0.99,
                                    .bits = 6};
  for (std::uint64_t record = 0; record < 60; ++record) {
    const Image image = random_image(40, 45, 3, record);
    Philox random = draws(0, record);
    random.uniform();
    const auto bin = static_cast<int>(random.below(31));
    const Augmentation drawn = draw_augmentation(kWide, bin, 31, {.height = 40, .width = 45}, random);
    expect_near(run_chain(trivial_augment_wide({.fill = {9}}), image, DType::kU8, record).values,
                after_augmentation(image, drawn), 0);
  }
}

// The bits must not change with compiler, library or processor.
TEST(RandAugment, IsTheSameOnEveryMachine) {
  std::uint64_t sum = 0;
  for (std::uint64_t record = 0; record < 100; ++record) {
    const Image image = random_image(19, 23, 3, record);
    const Operations chain =
        record % 2 == 0 ? rand_augment({.interpolation = Interpolation::kBilinear}) : trivial_augment_wide();
    for (const float value : run_chain(chain, image, DType::kU8, record).values) {
      sum = sum * 31 + static_cast<std::uint64_t>(value);
    }
  }
  EXPECT_EQ(sum, 7625760044578551857U);
}

TEST(RandAugment, MovesNoMasksAlong) {
  for (const Operations& chain : {flip() | rand_augment(), flip() | trivial_augment_wide()}) {
    EXPECT_THAT(error_of<ConfigError>([&] { (void)chain.along({.masks = {"mask"}}); }).what(),
                HasSubstr("cannot be moved along"));
  }
}

}  // namespace
}  // namespace headrace::test
