#include "headrace/pipeline/operation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

using ::testing::HasSubstr;

Field image(Shape shape, DType dtype = DType::kU8) { return {.name = "image", .dtype = dtype, .shape = shape}; }

// The field after a whole chain.
Field after(const Operations& operations, Field field) {
  for (const Operation& operation : operations.list()) field = apply_to_field(operation, field);
  return field;
}

std::string refusal_of_operations(const Operations& operations, const Field& field) {
  try {
    after(operations, field);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return {};
}

TEST(Operation, TellsTheFieldAfterIt) {
  const Field rgb = image({32, 48, 3});
  EXPECT_EQ(after(pad_crop(32, 4), rgb), image({32, 32, 3}));
  EXPECT_EQ(after(normalize({0}, {1}), rgb), image({32, 48, 3}, DType::kF32));
  EXPECT_EQ(after(to_layout(ImageLayout::kChannelsFirst), rgb), image({3, 32, 48}));
  EXPECT_EQ(after(to_layout(ImageLayout::kChannelsFirst) | to_layout(ImageLayout::kChannelsLast), rgb), rgb);
  EXPECT_EQ(after(to_layout(ImageLayout::kChannelsLast), rgb), rgb);
  EXPECT_EQ(after(flatten(), rgb), image({32 * 48 * 3}));
  EXPECT_EQ(after(resize(16), rgb), image({16, 24, 3}));
  EXPECT_EQ(after(resize(256) | center_crop(224), image({Shape::kDynamic, Shape::kDynamic, 3})),
            image({224, 224, 3}));
  EXPECT_EQ(after(random_resized_crop(), rgb), image({224, 224, 3}));
  EXPECT_EQ(after(color_jitter({.hue = 0.5F}) | cutout(100, {1, 2, 3}), rgb), rgb);
  const Field label{.name = "label", .dtype = DType::kI64, .shape = {}};
  EXPECT_EQ(after(one_hot(7), label), (Field{.name = "label", .dtype = DType::kF32, .shape = {7}}));
  EXPECT_EQ(after(mixup() | cutmix(), rgb), rgb);
}

TEST(Operation, KnowsItsFieldAndLevel) {
  EXPECT_EQ(field_of(flip().list()[0]), "image");
  EXPECT_EQ(field_of(one_hot(3).list()[0]), "label");
  EXPECT_EQ(field_of(Operation{OneHot{.field = "fine"}}), "fine");
  EXPECT_EQ(field_of(user_map({.field = "x"}).list()[0]), "x");
  EXPECT_TRUE(is_batch_level(mixup().list()[0]) && is_batch_level(cutmix().list()[0]));
  EXPECT_FALSE(is_batch_level(cutout(3).list()[0]));
}

TEST(Operation, RefusesOptionsThatMakeNoSense) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Field rgb = image({32, 48, 3});
  const Field label{.name = "label", .dtype = DType::kI64, .shape = {}};
  EXPECT_THAT(refusal_of_operations(color_jitter({.brightness = -0.1F}), rgb), HasSubstr("negative"));
  EXPECT_THAT(refusal_of_operations(color_jitter({.saturation = kNan}), rgb), HasSubstr("finite"));
  EXPECT_THAT(refusal_of_operations(color_jitter({.hue = 0.6F}), rgb), HasSubstr("0 and 0.5"));
  EXPECT_THAT(refusal_of_operations(color_jitter({.hue = kNan}), rgb), HasSubstr("0 and 0.5"));
  EXPECT_THAT(refusal_of_operations(color_jitter({}), image({8, 8, 1})), HasSubstr("three channels"));
  EXPECT_THAT(refusal_of_operations(color_jitter({}), image({8, 8, 3}, DType::kF32)),
              HasSubstr("uint8 is needed"));
  EXPECT_THAT(refusal_of_operations(brightness_contrast({}), rgb), HasSubstr("normalize() or cast() it first"));
  const Field floats = image({32, 48, 3}, DType::kF32);
  EXPECT_EQ(refusal_of_operations(brightness_contrast({.brightness = 3, .contrast = 2}), floats), "");
  EXPECT_THAT(refusal_of_operations(brightness_contrast({.brightness = -1}), floats), HasSubstr("negative"));
  EXPECT_THAT(refusal_of_operations(brightness_contrast({.contrast = kNan}), floats), HasSubstr("finite"));
  EXPECT_THAT(refusal_of_operations(brightness_contrast({.contrast = kInfinity}), floats), HasSubstr("finite"));
  EXPECT_THAT(refusal_of_operations(cutout(0), rgb), HasSubstr("not positive"));
  EXPECT_THAT(refusal_of_operations(cutout(3, {1, 2}), rgb), HasSubstr("2 values for 3 channels"));
  EXPECT_THAT(refusal_of_operations(cutout(3, {}), rgb), HasSubstr("0 values"));
  EXPECT_THAT(refusal_of_operations(cutout(3, {256}), rgb), HasSubstr("0 and 255"));
  EXPECT_EQ(refusal_of_operations(cutout(3, {-256}), image({8, 8, 3}, DType::kF32)), "");
  EXPECT_THAT(refusal_of_operations(cutout(3, {kNan}), rgb), HasSubstr("finite"));
  EXPECT_THAT(refusal_of_operations(flatten() | cutout(3), rgb), HasSubstr("three axes"));
  EXPECT_THAT(refusal_of_operations(one_hot(0), label), HasSubstr("0 classes"));
  EXPECT_THAT(refusal_of_operations(one_hot(5, -1), label), HasSubstr("smoothing"));
  EXPECT_THAT(refusal_of_operations(one_hot(5), rgb), HasSubstr("class number"));
  EXPECT_THAT(refusal_of_operations(one_hot(5) | one_hot(5), label), HasSubstr("class number"));
  EXPECT_THAT(refusal_of_operations(mixup({.alpha = kNan}), rgb), HasSubstr("alpha"));
  EXPECT_THAT(refusal_of_operations(cutmix({.alpha = 1e9F}), rgb), HasSubstr("alpha"));
  EXPECT_THAT(refusal_of_operations(mixup({.probability = 1.1F}), rgb), HasSubstr("probability"));
  EXPECT_THAT(refusal_of_operations(cutmix(), image({32})), HasSubstr("three axes"));
  // Of the older ones, what would run for ever or take all memory.
  EXPECT_THAT(refusal_of_operations(random_resized_crop({.max_ratio = kInfinity}), rgb), HasSubstr("ratios"));
  EXPECT_THAT(refusal_of_operations(random_resized_crop({.min_ratio = kNan}), rgb), HasSubstr("ratios"));
  EXPECT_THAT(refusal_of_operations(random_resized_crop({.min_area = kNan}), rgb), HasSubstr("areas"));
  EXPECT_THAT(refusal_of_operations(random_resized_crop({.size = 1 << 15}), rgb), HasSubstr("above 16384"));
  EXPECT_THAT(refusal_of_operations(resize(1 << 30), rgb), HasSubstr("above 16384"));
  EXPECT_THAT(refusal_of_operations(resize(0), rgb), HasSubstr("not positive"));
  EXPECT_THAT(refusal_of_operations(center_crop(-3), rgb), HasSubstr("not positive"));
  EXPECT_THAT(refusal_of_operations(pad_crop(32, 2'000'000'000), rgb), HasSubstr("padding is above"));
  EXPECT_THAT(refusal_of_operations(normalize({kNan}, {1}), rgb), HasSubstr("finite"));
  EXPECT_THAT(refusal_of_operations(normalize({0}, {kInfinity}), rgb), HasSubstr("finite"));
  EXPECT_THAT(refusal_of_operations(flip(kNan), rgb), HasSubstr("probability"));
}

TEST(Operation, RefusesWhatCannotBe) {
  const Field rgb = image({32, 48, 3});
  EXPECT_THAT(refusal_of_operations(pad_crop(64, 4), rgb), HasSubstr("smaller than the crop"));
  EXPECT_THAT(refusal_of_operations(pad_crop(8, 32, Padding::kReflect), rgb), HasSubstr("reflection"));
  EXPECT_THAT(refusal_of_operations(pad_crop(0, 4), rgb), HasSubstr("not positive"));
  EXPECT_THAT(refusal_of_operations(pad_crop(8, -1), rgb), HasSubstr("negative"));
  EXPECT_THAT(refusal_of_operations(center_crop(33), rgb), HasSubstr("smaller than the crop"));
  EXPECT_THAT(refusal_of_operations(flip(1.5F), rgb), HasSubstr("probability"));
  EXPECT_THAT(refusal_of_operations(normalize({0, 0}, {1, 1}), rgb), HasSubstr("2 means for 3 channels"));
  EXPECT_THAT(refusal_of_operations(normalize({0}, {0}), rgb), HasSubstr("deviation is 0"));
  EXPECT_THAT(refusal_of_operations(normalize({}, {}), rgb), HasSubstr("0 means"));
  EXPECT_THAT(refusal_of_operations(cast(DType::kF16), rgb), HasSubstr("float16"));
  EXPECT_THAT(refusal_of_operations(normalize({0}, {1}) | resize(8), rgb), HasSubstr("uint8 is needed"));
  EXPECT_THAT(refusal_of_operations(to_layout(ImageLayout::kChannelsFirst) | flip(), rgb),
              HasSubstr("channels come first"));
  EXPECT_THAT(refusal_of_operations(flatten() | flip(), rgb), HasSubstr("(H, W, C)"));
  EXPECT_THAT(refusal_of_operations(flatten(), image({Shape::kDynamic, 4, 3})), HasSubstr("differs from record"));
  EXPECT_THAT(refusal_of_operations(random_resized_crop({.min_area = 0.5F, .max_area = 0.1F}), rgb),
              HasSubstr("areas"));
  EXPECT_THAT(refusal_of_operations(random_resized_crop({.min_ratio = 0}), rgb), HasSubstr("ratios"));
  UserMap map{.name = "f", .output = {.shape = {1}}};
  EXPECT_THAT(refusal_of_operations(user_map(map), rgb), HasSubstr("no function"));
  map.function = [](auto&&...) {};
  map.output.shape = {Shape::kDynamic};
  EXPECT_THAT(refusal_of_operations(user_map(map), rgb), HasSubstr("fixed shape"));
}

TEST(Operation, KnowsWhatIsRandomAndDescribesItself) {
  const Operations all =
      pad_crop(32, 4, Padding::kReflect) | flip() | random_resized_crop() | resize(8) | center_crop(8);
  std::vector<bool> random;
  for (const Operation& operation : all.list()) random.push_back(is_random(operation));
  EXPECT_EQ(random, (std::vector<bool>{true, true, true, false, false}));
  EXPECT_TRUE(is_random(color_jitter({}).list()[0]) && is_random(cutout(1).list()[0]) &&
              is_random(mixup().list()[0]));
  EXPECT_FALSE(is_random(one_hot(2).list()[0]));
  EXPECT_EQ(describe(cutout(8, {1, 2, 3}).list()[0]), "cutout(8, fill=[1, 2, 3])");
  EXPECT_EQ(describe(all.list()[0]), "pad_crop(32, pad=4, reflect)");
  EXPECT_TRUE(is_random(alternating_flip().list()[0]));
  EXPECT_EQ(describe(flip().list()[0]), "flip(0.5)");
  EXPECT_EQ(describe(alternating_flip().list()[0]), "flip(0.5, alternating)");
  EXPECT_EQ(describe(normalize({0.5F, 1}, {2, 3}).list()[0]), "normalize(mean=[0.5, 1], std=[2, 3])");
}

}  // namespace
}  // namespace headrace
