#include <fmt/format.h>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/operations/machinery/field_checks.h"
#include "headrace/pipeline/operations/machinery/moving_operation.h"
#include "headrace/pipeline/operations/machinery/pixel_pass.h"

namespace headrace {
namespace {

// A window at a random position in the image with its border.
class RandomPlace final : public WindowChange {
 public:
  RandomPlace(const PadCrop& options, std::uint16_t number) : options_(options), number_(number) {}

  void change(CropWindow& window, const StepContext& context) const override {
    const std::int64_t down = window.height - options_.size, right = window.width - options_.size;
    const std::int64_t height = window.height - 2 * options_.pad, width = window.width - 2 * options_.pad;
    if (down < 0 || right < 0 ||
        (options_.padding == Padding::kReflect && (options_.pad >= height || options_.pad >= width))) {
      throw Error(
          ErrorCode::kDataCorrupt,
          fmt::format("an image of {} x {} is too small for {}", height, width, describe(Operation{options_})),
          "resize() first");
    }
    Philox random = context.random(number_);
    const std::int64_t top = random.below(static_cast<std::uint32_t>(down + 1));
    const std::int64_t left = random.below(static_cast<std::uint32_t>(right + 1));
    window.cut({.top = top, .left = left, .height = options_.size, .width = options_.size});
  }

 private:
  PadCrop options_;
  std::uint16_t number_;
};

class PadCropDefinition final : public MovingOperation<PadCrop> {
 public:
  using MovingOperation::MovingOperation;

  bool is_random() const noexcept override { return true; }

  Field apply(const Field& before) const override {
    const FieldChecks checks(*this, before);
    checks.want_channels_last();
    checks.want_type({DType::kU8, DType::kF32});
    checks.want_size(options_.size);
    if (options_.pad < 0) checks.refuse("the padding is negative");
    if (options_.pad > kMaxSide) checks.refuse(fmt::format("the padding is above {}", kMaxSide));
    for (int axis = 0; axis < 2; ++axis) {
      const std::int64_t extent = before.shape[axis];
      if (extent == Shape::kDynamic) continue;
      if (extent + 2 * options_.pad < options_.size) checks.refuse("the padded image is smaller than the crop");
      if (options_.padding == Padding::kReflect && options_.pad >= extent) {
        checks.refuse("reflection needs a padding smaller than the image");
      }
    }
    return squared(before, options_.size);
  }

  // With padding the image has the crop's size; without, it cuts a part out of a larger one.
  std::optional<Field> undisturbed(const Field& before) const override {
    const bool unknown = before.shape[0] == Shape::kDynamic && before.shape[1] == Shape::kDynamic;
    return unknown && options_.pad > 0 ? apply(before) : MovingOperation::undisturbed(before);
  }

  // Padding with zeros after values were changed differs from padding before.
  bool join(PixelPass& pass, const OperationPlace& place) const override {
    if (pass.changes_values() || pass.flat || pass.to_layout != pass.from_layout) return false;
    if (!pass.window.add(ImageBorder{.pixels = options_.pad, .padding = options_.padding})) return false;
    pass.window.add(std::make_shared<RandomPlace>(options_, place.number));
    return true;
  }

 private:
  std::shared_ptr<const PixelMover> mover(std::uint16_t number) const override {
    return window_mover(std::make_shared<RandomPlace>(options_, number),
                        {.pixels = options_.pad, .padding = options_.padding});
  }
};

}  // namespace

OperationPtr define(PadCrop options) { return std::make_shared<PadCropDefinition>(options); }

Operations pad_crop(int size, int pad, Padding padding) {
  return Operation{PadCrop{.size = size, .pad = pad, .padding = padding}};
}

}  // namespace headrace
