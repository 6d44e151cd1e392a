#include "headrace/pipeline/operations/crop_window.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/operations/pixel_pass.h"

namespace headrace {
namespace {

const Field kAnyImage{.name = "image", .dtype = DType::kU8, .shape = {Shape::kDynamic, Shape::kDynamic, 3}};

WindowChooser chooser(const Operations& operations) {
  PixelPass made(kAnyImage, kHostPass);
  std::uint16_t number = 0;
  for (const Operation& operation : operations.list()) {
    EXPECT_TRUE(operation.definition().join(made, {.number = number++, .before = kAnyImage}));
  }
  return made.window;
}

CropWindow window_of(const WindowChooser& chooser, std::int64_t height, std::int64_t width,
                     std::uint64_t record = 0) {
  const StepContext context{.seed = 3, .record = record};
  CropWindow window = chooser.crop(height, width, context);
  chooser.turn(window, context);
  return window;
}

TEST(WindowChooser, NothingIsTheWholeImage) {
  const CropWindow window = window_of({}, 5, 7);
  EXPECT_EQ(window.height, 5);
  EXPECT_EQ(window.width, 7);
  EXPECT_FALSE(window.mirrored);
  EXPECT_TRUE(WindowChooser().empty());
}

TEST(WindowChooser, EveryPlaceOfACropComesUpAndNoOther) {
  const WindowChooser crop = chooser(pad_crop(6, 2));
  std::set<std::pair<std::int64_t, std::int64_t>> places;
  for (std::uint64_t record = 0; record < 500; ++record) {
    const CropWindow window = window_of(crop, 4, 5, record);
    places.emplace(window.top, window.left);
    EXPECT_EQ(window.height, 6);
    EXPECT_EQ(window.width, 6);
  }
  EXPECT_EQ(places.size(), 3U * 4U);
  EXPECT_EQ(*places.begin(), std::pair(std::int64_t{0}, std::int64_t{0}));
  EXPECT_EQ(*places.rbegin(), std::pair(std::int64_t{2}, std::int64_t{3}));
}

// As Python's round((height - size) / 2) for the sizes' differences 0, 1, 2 ...
TEST(CenterCrop, RoundsAsTorchvisionDoes) {
  const std::vector<std::int64_t> torchvision{0, 0, 1, 2, 2, 2, 3, 4, 4, 4, 5, 6, 6};
  for (std::size_t difference = 0; difference < torchvision.size(); ++difference) {
    const auto extent = static_cast<std::int64_t>(224 + difference);
    const ImageWindow window = center_of({.height = extent, .width = 224}, {.size = 224});
    EXPECT_EQ(window.top, torchvision[difference]) << "of " << extent;
    EXPECT_EQ(window.left, 0);
  }
}

// Of an odd rest the even half is left of what is seen, which in a mirrored image is its right.
TEST(WindowChooser, CentresWhatIsSeen) {
  const CropWindow plain = window_of(chooser(center_crop(2)), 5, 5);
  EXPECT_EQ(plain.top, 2);
  EXPECT_EQ(plain.left, 2);
  const CropWindow mirrored = window_of(chooser(flip(1.0F) | center_crop(2)), 5, 5);
  EXPECT_EQ(mirrored.top, 2);
  EXPECT_EQ(mirrored.left, 1);
  EXPECT_TRUE(mirrored.mirrored);
  EXPECT_FALSE(window_of(chooser(flip(1.0F) | flip(1.0F)), 5, 5).mirrored);
}

TEST(WindowChooser, PaddingMustComeFirstAndImagesBeLargeEnough) {
  WindowChooser made = chooser(flip());
  EXPECT_FALSE(made.add(PlannedPadCrop{.options = {}, .number = 1}));
  EXPECT_THROW(window_of(chooser(pad_crop(8, 1)), 5, 9), Error);
  EXPECT_THROW(window_of(chooser(pad_crop(4, 3, Padding::kReflect)), 3, 9), Error);
  EXPECT_THROW(window_of(chooser(center_crop(8)), 9, 5), Error);
}

}  // namespace
}  // namespace headrace
