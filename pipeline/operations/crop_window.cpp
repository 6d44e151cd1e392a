#include "headrace/pipeline/operations/crop_window.h"

#include <fmt/format.h>

#include "headrace/devices/base/error.h"

namespace headrace {

namespace {

// Half of what is cut away; of an odd number the half that is even, as torchvision's center_crop has it.
std::int64_t half_to_even(std::int64_t difference) {
  const std::int64_t floor = difference / 2;
  return difference % 2 == 1 && floor % 2 == 1 ? floor + 1 : floor;
}

}  // namespace

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

bool WindowChooser::takes(const Operation& operation) {
  return std::holds_alternative<PadCrop>(operation) || std::holds_alternative<CenterCrop>(operation) ||
         std::holds_alternative<Flip>(operation);
}

bool WindowChooser::add(const PlannedOperation& planned) {
  if (const auto* crop = std::get_if<PadCrop>(&planned.operation)) {
    if (!empty()) return false;
    crop_ = {.options = *crop, .number = planned.number};
  } else if (const auto* center = std::get_if<CenterCrop>(&planned.operation)) {
    turns_.emplace_back(*center);
  } else {
    turns_.emplace_back(Mirror{.options = std::get<Flip>(planned.operation), .number = planned.number});
  }
  return true;
}

CropWindow WindowChooser::crop(std::int64_t height, std::int64_t width, const StepContext& context) const {
  if (!crop_) return {.height = height, .width = width};
  const PadCrop& options = crop_->options;
  const std::int64_t down = height + 2 * options.pad - options.size;
  const std::int64_t right = width + 2 * options.pad - options.size;
  if (down < 0 || right < 0 ||
      (options.padding == Padding::kReflect && (options.pad >= height || options.pad >= width))) {
    throw Error(
        ErrorCode::kDataCorrupt,
        fmt::format("an image of {} x {} is too small for {}", height, width, describe(Operation{options})),
        "resize() first");
  }
  Philox random = context.random(crop_->number);
  const std::int64_t top = random.below(static_cast<std::uint32_t>(down + 1));
  const std::int64_t left = random.below(static_cast<std::uint32_t>(right + 1));
  return {.top = top, .left = left, .height = options.size, .width = options.size};
}

bool WindowChooser::Mirror::drawn(const StepContext& context) const {
  const bool alternating = options.draw == FlipDraw::kAlternating;
  StepContext keyed = context;
  if (alternating) keyed.pass = 0;
  const bool mirrored = keyed.random(number).uniform() < options.probability;
  return mirrored ^ (alternating && context.pass % 2 == 1);
}

void WindowChooser::turn(CropWindow& window, const StepContext& context) const {
  for (const auto& turn : turns_) {
    if (const auto* mirror = std::get_if<Mirror>(&turn)) {
      window.mirrored ^= mirror->drawn(context);
      continue;
    }
    const ImageWindow center =
        center_of({.height = window.height, .width = window.width}, std::get<CenterCrop>(turn));
    window.top += center.top;
    window.left += window.mirrored ? window.width - center.width - center.left : center.left;
    window.height = center.height;
    window.width = center.width;
  }
}

}  // namespace headrace
