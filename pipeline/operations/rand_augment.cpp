#include <fmt/format.h>

#include <utility>

#include "headrace/pipeline/operations/machinery/augmentation.h"

namespace headrace {
namespace {

constexpr int kMaxAugmentations = 16;

// torchvision's ranges; the paper's images were 331 pixels wide.
constexpr AugmentationSpace kRandSpace{.shear = 0.3,
                                       .translate_numerator = 150,
                                       .translate_denominator = 331,
                                       .degrees = 30,
                                       .factor = 0.9,
                                       .bits = 4};

class RandAugmentDefinition final : public ImageOperation<RandAugment> {
 public:
  using ImageOperation::ImageOperation;

  bool is_random() const noexcept override { return true; }
  bool takes_long() const noexcept override { return true; }
  OperationPtr with_along(const Along& /*fields*/) const override { refuse_to_move_along(*this); }

  void change(const LevelWork& image, Philox& random, Scratch& scratch) const override {
    const AugmentationStyle style = augmentation_style(options_.fill, options_.interpolation);
    const ImageSize size{.height = image.height, .width = image.width};
    LevelWork step = image;
    for (int i = 0; i < options_.operations; ++i) {
      const Augmentation drawn = draw_augmentation(kRandSpace, options_.magnitude, options_.bins, size, random);
      if (i + 1 == options_.operations) {
        step.to = image.to;
      } else {
        std::vector<std::byte>& between = i % 2 == 0 ? scratch.decoded : scratch.turned;
        const auto bytes = static_cast<std::size_t>(image.elements());
        step.to = reinterpret_cast<std::uint8_t*>(scratch.grow(between, bytes).data());
      }
      augment(drawn, style, step);
      step.from = step.to;
    }
  }

 private:
  Field changed(const Field& before, const FieldChecks& checks) const override {
    want_augmentable(checks, before, options_.fill, options_.bins);
    if (options_.operations < 1 || options_.operations > kMaxAugmentations) {
      checks.refuse(fmt::format("the operations are not within 1 and {}", kMaxAugmentations));
    }
    if (options_.magnitude < 0 || options_.magnitude >= options_.bins) {
      checks.refuse("the magnitude is none of the bins, which count from 0");
    }
    return before;
  }
};

}  // namespace

OperationPtr define(RandAugment options) { return std::make_shared<RandAugmentDefinition>(std::move(options)); }

Operations rand_augment(RandAugment options) { return Operation{std::move(options)}; }

}  // namespace headrace
