#include "headrace/pipeline/operations/machinery/crop_window.h"
#include "headrace/tests/pipeline/operations/crop_windows.h"
#include "headrace/tests/pipeline/operations/machinery/chain_fixture.h"

namespace headrace::test {
namespace {

// An operation of one file, which nothing else names.
struct UpperHalf {};

class UpperHalfDefinition final : public OperationDefinition {
 public:
  std::string describe() const override { return "upper_half()"; }
  Field apply(const Field& before) const override {
    Field after = before;
    after.shape = {before.shape[0] / 2, before.shape[1], before.shape[2]};
    return after;
  }
  bool join(PixelPass& pass, const OperationPlace& /*place*/) const override {
    class Half final : public WindowChange {
      void change(CropWindow& window, const StepContext& /*context*/) const override {
        window.cut({.height = window.height / 2, .width = window.width});
      }
    };
    pass.window.add(std::make_shared<Half>());
    return true;
  }
};

OperationPtr define(UpperHalf /*options*/) { return std::make_shared<UpperHalfDefinition>(); }

TEST(WindowChooser, NothingIsTheWholeImage) {
  const CropWindow window = window_of({}, 5, 7);
  EXPECT_EQ(window.height, 5);
  EXPECT_EQ(window.width, 7);
  EXPECT_FALSE(window.mirrored);
  EXPECT_TRUE(WindowChooser().empty());
}

TEST(WindowChooser, PaddingMustComeFirstAndImagesBeLargeEnough) {
  WindowChooser made = chooser(flip());
  EXPECT_FALSE(made.add(ImageBorder{.pixels = 1}));
  EXPECT_THROW(window_of(chooser(pad_crop(8, 1)), 5, 9), Error);
  EXPECT_THROW(window_of(chooser(pad_crop(4, 3, Padding::kReflect)), 3, 9), Error);
  EXPECT_THROW(window_of(chooser(center_crop(8)), 9, 5), Error);
}

// Wherever it stands among those that move pixels, in one pass with what follows.
TEST(WindowChooser, TakesOperationsThatNothingElseNames) {
  const Operation upper_half = UpperHalf{};
  const Image image = random_image(12, 10, 3, 4);
  for (const Operations& rest : {Operations(cast(DType::kF32)), normalize({0.5F}, {0.25F})}) {
    const auto whole = run_chain(pad_crop(8, 2) | flip() | rest, image, DType::kU8).values;
    const std::vector<float> expected(whole.begin(),
                                      whole.begin() + static_cast<std::ptrdiff_t>(whole.size() / 2));
    const auto last = run_chain(pad_crop(8, 2) | flip() | upper_half | rest, image, DType::kU8);
    EXPECT_EQ(last.field.shape, (Shape{4, 8, 3}));
    EXPECT_EQ(last.values, expected);
  }
  PixelPass pass({.name = "image", .dtype = DType::kU8, .shape = {12, 10, 3}}, kDevicePass);
  EXPECT_TRUE(pass.add(upper_half.definition(), {})) << "on a device, too";
}

}  // namespace
}  // namespace headrace::test
