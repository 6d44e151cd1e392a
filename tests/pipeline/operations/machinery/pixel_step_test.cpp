#include "headrace/pipeline/operations/machinery/pixel_step.h"
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
    const Chain chain(field, stages, ChainPlace::kAfterCache);
    std::vector<std::byte> row(static_cast<std::size_t>(chain.output().shape.elements()));
    EXPECT_THROW(chain.run_into({.bytes = bytes, .shape = {3, 4, 3}}, {.scratch = &scratch, .probe = &probe}, row),
                 Error);
  }
}

}  // namespace
}  // namespace headrace::test
