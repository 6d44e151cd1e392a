#include <fmt/format.h>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/operations/field_checks.h"
#include "headrace/pipeline/operations/pixel_pass.h"

namespace headrace {
namespace {

class PadCropDefinition final : public OperationDefinition {
 public:
  explicit PadCropDefinition(const PadCrop& options) : options_(options) {}

  std::string describe() const override {
    return fmt::format("pad_crop({}, pad={}, {})", options_.size, options_.pad,
                       options_.padding == Padding::kZero ? "zero" : "reflect");
  }

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

  // Zeros around numbers that were changed are other than zeros that are.
  bool join(PixelPass& pass, const OperationPlace& place) const override {
    if (pass.changes_values() || pass.flat || pass.to_layout != pass.from_layout) return false;
    return pass.window.add(PlannedPadCrop{.options = options_, .number = place.number});
  }

 private:
  PadCrop options_;
};

}  // namespace

OperationPtr define(PadCrop options) { return std::make_shared<PadCropDefinition>(options); }

Operations pad_crop(int size, int pad, Padding padding) {
  return Operation{PadCrop{.size = size, .pad = pad, .padding = padding}};
}

CropWindow PlannedPadCrop::draw(std::int64_t height, std::int64_t width, const StepContext& context) const {
  const std::int64_t down = height + 2 * options.pad - options.size;
  const std::int64_t right = width + 2 * options.pad - options.size;
  if (down < 0 || right < 0 ||
      (options.padding == Padding::kReflect && (options.pad >= height || options.pad >= width))) {
    throw Error(
        ErrorCode::kDataCorrupt,
        fmt::format("an image of {} x {} is too small for {}", height, width, describe(Operation{options})),
        "resize() first");
  }
  Philox random = context.random(number);
  const std::int64_t top = random.below(static_cast<std::uint32_t>(down + 1));
  const std::int64_t left = random.below(static_cast<std::uint32_t>(right + 1));
  return {.top = top, .left = left, .height = options.size, .width = options.size};
}

}  // namespace headrace
