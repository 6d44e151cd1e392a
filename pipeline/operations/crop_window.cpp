#include "headrace/pipeline/operations/crop_window.h"

namespace headrace {

bool WindowChooser::add(const PlannedPadCrop& crop) {
  if (!empty()) return false;
  crop_ = crop;
  return true;
}

CropWindow WindowChooser::crop(std::int64_t height, std::int64_t width, const StepContext& context) const {
  if (!crop_) return {.height = height, .width = width};
  return crop_->draw(height, width, context);
}

void WindowChooser::turn(CropWindow& window, const StepContext& context) const {
  for (const auto& turn : turns_) {
    if (const auto* flip = std::get_if<PlannedFlip>(&turn)) {
      window.mirrored ^= flip->draw(context);
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
