#include <utility>

#include "headrace/pipeline/operations/machinery/augmentation.h"

namespace headrace {
namespace {

constexpr AugmentationSpace kWideSpace{.shear = 0.99,
                                       .translate_numerator = 32,
                                       .translates_pixels = true,
                                       .degrees = 135,
                                       .factor = 0.99,
                                       .bits = 6};

class TrivialAugmentWideDefinition final : public ImageOperation<TrivialAugmentWide> {
 public:
  using ImageOperation::ImageOperation;

  bool is_random() const noexcept override { return true; }
  bool takes_long() const noexcept override { return true; }
  OperationPtr with_along(const Along& /*fields*/) const override { refuse_to_move_along(*this); }

  // Draws the magnitude before the kind.
  void change(const LevelWork& image, Philox& random, Scratch& /*scratch*/) const override {
    const auto bin = static_cast<int>(random.below(static_cast<std::uint32_t>(options_.bins)));
    const ImageSize size{.height = image.height, .width = image.width};
    augment(draw_augmentation(kWideSpace, bin, options_.bins, size, random),
            augmentation_style(options_.fill, options_.interpolation), image);
  }

 private:
  Field changed(const Field& before, const FieldChecks& checks) const override {
    want_augmentable(checks, before, options_.fill, options_.bins);
    return before;
  }
};

}  // namespace

OperationPtr define(TrivialAugmentWide options) {
  return std::make_shared<TrivialAugmentWideDefinition>(std::move(options));
}

Operations trivial_augment_wide(TrivialAugmentWide options) { return Operation{std::move(options)}; }

}  // namespace headrace
