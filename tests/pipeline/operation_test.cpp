#include "headrace/pipeline/operation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

std::string refusal(const Operations& operations, const Field& field) {
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
}

TEST(Operation, RefusesWhatCannotBe) {
  const Field rgb = image({32, 48, 3});
  EXPECT_THAT(refusal(pad_crop(64, 4), rgb), HasSubstr("smaller than the crop"));
  EXPECT_THAT(refusal(pad_crop(8, 32, Padding::kReflect), rgb), HasSubstr("reflection"));
  EXPECT_THAT(refusal(pad_crop(0, 4), rgb), HasSubstr("not positive"));
  EXPECT_THAT(refusal(pad_crop(8, -1), rgb), HasSubstr("negative"));
  EXPECT_THAT(refusal(center_crop(33), rgb), HasSubstr("smaller than the crop"));
  EXPECT_THAT(refusal(flip(1.5F), rgb), HasSubstr("probability"));
  EXPECT_THAT(refusal(normalize({0, 0}, {1, 1}), rgb), HasSubstr("2 means for 3 channels"));
  EXPECT_THAT(refusal(normalize({0}, {0}), rgb), HasSubstr("deviation is 0"));
  EXPECT_THAT(refusal(normalize({}, {}), rgb), HasSubstr("0 means"));
  EXPECT_THAT(refusal(cast(DType::kF16), rgb), HasSubstr("float16"));
  EXPECT_THAT(refusal(normalize({0}, {1}) | resize(8), rgb), HasSubstr("uint8 is needed"));
  EXPECT_THAT(refusal(to_layout(ImageLayout::kChannelsFirst) | flip(), rgb), HasSubstr("channels come first"));
  EXPECT_THAT(refusal(flatten() | flip(), rgb), HasSubstr("(H, W, C)"));
  EXPECT_THAT(refusal(flatten(), image({Shape::kDynamic, 4, 3})), HasSubstr("differs from record"));
  EXPECT_THAT(refusal(random_resized_crop({.min_area = 0.5F, .max_area = 0.1F}), rgb), HasSubstr("areas"));
  EXPECT_THAT(refusal(random_resized_crop({.min_ratio = 0}), rgb), HasSubstr("ratios"));
  UserMap map{.name = "f", .output = {.shape = {1}}};
  EXPECT_THAT(refusal(user_map(map), rgb), HasSubstr("no function"));
  map.function = [](auto&&...) {};
  map.output.shape = {Shape::kDynamic};
  EXPECT_THAT(refusal(user_map(map), rgb), HasSubstr("fixed shape"));
}

TEST(Operation, KnowsWhatIsRandomAndDescribesItself) {
  const Operations all =
      pad_crop(32, 4, Padding::kReflect) | flip() | random_resized_crop() | resize(8) | center_crop(8);
  std::vector<bool> random;
  for (const Operation& operation : all.list()) random.push_back(is_random(operation));
  EXPECT_EQ(random, (std::vector<bool>{true, true, true, false, false}));
  EXPECT_EQ(describe(all.list()[0]), "pad_crop(32, pad=4, reflect)");
  EXPECT_EQ(describe(normalize({0.5F, 1}, {2, 3}).list()[0]), "normalize(mean=[0.5, 1], std=[2, 3])");
}

}  // namespace
}  // namespace headrace
