#include "headrace/pipeline/operations/pixel_step.h"

#include "headrace/devices/base/error.h"
#include "headrace/tests/pipeline/operations/chain_fixture.h"

namespace headrace {
namespace {

using namespace test;

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

TEST(PixelStep, PadsBeforeNormalizingWhereItStandsBefore) {
  const Image image = random_image(4, 4, 3, 1);
  const auto before = run_chain(pad_crop(12, 4) | normalize(kPixelMean, kPixelStd), image, DType::kU8);
  const auto after = run_chain(normalize(kPixelMean, kPixelStd) | pad_crop(12, 4), image, DType::kU8);
  EXPECT_NEAR(before.values[0], -kPixelMean[0] / kPixelStd[0], 1e-6);
  EXPECT_EQ(after.values[0], 0.0F);
}

TEST(PixelStep, CropsTheCentreAlsoOfAMirroredImage) {
  const Image image = random_image(11, 10, 3, 3);
  const Image expected = naive_crop(naive_mirror(image), 3, 2, 5, Padding::kZero);
  expect_near(run_chain(flip(1) | center_crop(5), image, DType::kU8).values, expected.values, 0);
  expect_near(run_chain(center_crop(5), image, DType::kU8).values,
              naive_crop(image, 3, 2, 5, Padding::kZero).values, 0);
}

TEST(PixelStep, FlipsTwiceToNothing) {
  const Image image = random_image(5, 21, 3, 3);
  expect_near(run_chain(flip(1) | flip(1), image, DType::kU8).values, image.values, 0);
  expect_near(run_chain(flip(0), image, DType::kU8).values, image.values, 0);
}

TEST(PixelStep, AnAlternatingFlipTurnsRoundFromPassToPass) {
  int mirrored_first = 0;
  for (std::uint64_t record = 0; record < 40; ++record) {
    const Image image = random_image(5, 6, 3, record);
    const bool first = draws(0, record).uniform() < 0.5F;
    mirrored_first += first ? 1 : 0;
    for (std::uint64_t pass = 0; pass < 4; ++pass) {
      const Image expected = first != (pass % 2 == 1) ? naive_mirror(image) : image;
      expect_near(run_chain(alternating_flip(), image, DType::kU8, record, pass).values, expected.values, 0);
    }
  }
  EXPECT_GT(mirrored_first, 10);
  EXPECT_LT(mirrored_first, 30);
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

TEST(PixelStep, CastsRoundAndSaturate) {
  Image image = random_image(1, 5, 1, 0);
  image.values = {-3.0F, 0.4F, 1.5F, 2.6F, 300.0F};
  expect_near(run_chain(cast(DType::kU8), image, DType::kF32).values, {0, 0, 2, 3, 255}, 0);
  // Rounding is not lost when a cast back follows.
  expect_near(run_chain(cast(DType::kU8) | cast(DType::kF32), image, DType::kF32).values, {0, 0, 2, 3, 255}, 0);
  image.values = {0, 1, 2, 254, 255};
  expect_near(run_chain(cast(DType::kF32), image, DType::kU8).values, image.values, 0);
  expect_near(run_chain(normalize({0}, {1}) | cast(DType::kU8) | cast(DType::kF32), image, DType::kU8).values,
              {0, 0, 0, 1, 1}, 0);
}

TEST(PixelStep, NormalizesWhatIsNoImage) {
  const Field field{.name = "image", .dtype = DType::kF32, .shape = {6}};
  const auto stages = planned(normalize({1, 2, 3, 4, 5, 6}, {1, 1, 1, 2, 2, 2}));
  const Chain chain(field, stages, ChainPlace::kAfterCache);
  const auto bytes = to_elements({2, 2, 2, 2, 2, 2}, DType::kF32);
  std::vector<std::byte> row(bytes.size());
  Scratch scratch;
  QuietProbe probe;
  chain.run_into({.bytes = bytes, .shape = field.shape}, {.scratch = &scratch, .probe = &probe}, row);
  expect_near(from_elements(row, DType::kF32), {1, 0, -1, -1, -1.5F, -2}, 1e-6F);
}

TEST(PixelStep, ConvertsPlanesToInterleavedAndFlattens) {
  const Image image = random_image(6, 7, 3, 8);
  const auto back =
      run_chain(to_layout(ImageLayout::kChannelsFirst) | to_layout(ImageLayout::kChannelsLast), image, DType::kU8);
  EXPECT_EQ(back.field.shape, (Shape{6, 7, 3}));
  expect_near(back.values, image.values, 0);
  const auto flat = run_chain(normalize({0}, {1}) | flatten(), image, DType::kU8);
  EXPECT_EQ(flat.field.shape, (Shape{126}));
}

TEST(PixelStep, DrawsAnewForEveryRecordAndPass) {
  const Image image = random_image(32, 32, 3, 8);
  const Operations crop = pad_crop(32, 4);
  const auto first = run_chain(crop, image, DType::kU8, 0, 0).values;
  int other_record = 0, other_pass = 0;
  for (std::uint64_t i = 1; i <= 10; ++i) {
    other_record += run_chain(crop, image, DType::kU8, i, 0).values != first ? 1 : 0;
    other_pass += run_chain(crop, image, DType::kU8, 0, i).values != first ? 1 : 0;
  }
  EXPECT_GE(other_record, 8);
  EXPECT_GE(other_pass, 8);
}

TEST(PixelStep, RefusesImagesThatTurnOutTooSmall) {
  const Field field{.name = "image", .dtype = DType::kU8, .shape = {Shape::kDynamic, Shape::kDynamic, 3}};
  Scratch scratch;
  QuietProbe probe;
  const std::vector<std::byte> bytes(3 * 4 * 3);
  for (const Operations& operations : {center_crop(4), pad_crop(12, 4), pad_crop(4, 3, Padding::kReflect)}) {
    const auto stages = planned(operations);
    const Chain chain(field, stages, ChainPlace::kAfterCache);
    std::vector<std::byte> row(static_cast<std::size_t>(chain.output().shape.elements()));
    EXPECT_THROW(chain.run_into({.bytes = bytes, .shape = {3, 4, 3}}, {.scratch = &scratch, .probe = &probe}, row),
                 Error);
  }
}

}  // namespace
}  // namespace headrace
