#include <fmt/format.h>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/operations/machinery/field_checks.h"
#include "headrace/pipeline/operations/machinery/moving_operation.h"
#include "headrace/pipeline/operations/machinery/pixel_pass.h"
#include "headrace/pipeline/operations/machinery/step.h"
#include "headrace/pipeline/operations/resize.h"

namespace headrace {
namespace {

// Returns half of the surplus; of an odd number the half that is even, as in torchvision's center_crop.
std::int64_t half_to_even(std::int64_t difference) {
  const std::int64_t floor = difference / 2;
  return difference % 2 == 1 && floor % 2 == 1 ? floor + 1 : floor;
}

class Center final : public WindowChange {
 public:
  explicit Center(const CenterCrop& options) : options_(options) {}

  void change(CropWindow& window, const StepContext& /*context*/) const override {
    window.cut(center_of({.height = window.height, .width = window.width}, options_));
  }

 private:
  CenterCrop options_;
};

class CenterCropDefinition final : public MovingOperation<CenterCrop> {
 public:
  using MovingOperation::MovingOperation;

  Field apply(const Field& before) const override {
    const FieldChecks checks(*this, before);
    checks.want_channels_last();
    checks.want_type({DType::kU8, DType::kF32});
    checks.want_size(options_.size);
    for (int axis = 0; axis < 2; ++axis) {
      const std::int64_t extent = before.shape[axis];
      if (extent != Shape::kDynamic && extent < options_.size) {
        checks.refuse("the image is smaller than the crop", "resize() it first");
      }
    }
    return squared(before, options_.size);
  }

  bool join(PixelPass& pass, const OperationPlace& /*place*/) const override {
    pass.window.add(std::make_shared<Center>(options_));
    return true;
  }

  // After a resize only the remaining pixels are computed, and after a decode only the input for these is decoded.
  bool compile(StepList& steps, const OperationPlace& /*place*/) const override {
    auto* resize = steps.last<ResizeStep>();
    if (resize == nullptr || resize->crops()) return false;
    resize->crop_after(options_);
    steps.extend_last(describe());
    return true;
  }

 private:
  std::shared_ptr<const PixelMover> mover(std::uint16_t /*number*/) const override {
    return window_mover(std::make_shared<Center>(options_));
  }
};

}  // namespace

OperationPtr define(CenterCrop options) { return std::make_shared<CenterCropDefinition>(options); }

Operations center_crop(int size) { return Operation{CenterCrop{.size = size}}; }

ImageWindow center_of(const ImageSize& image, const CenterCrop& crop) {
  const std::int64_t down = image.height - crop.size, right = image.width - crop.size;
  if (down < 0 || right < 0) {
    throw Error(ErrorCode::kDataCorrupt,
                fmt::format("an image of {} x {} is smaller than {}", image.height, image.width,
                            describe(Operation{crop})),
                "resize() first");
  }
  return {.top = half_to_even(down), .left = half_to_even(right), .height = crop.size, .width = crop.size};
}

}  // namespace headrace
