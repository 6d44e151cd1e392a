#include "headrace/pipeline/operations/machinery/crop_window.h"

namespace headrace {

void CropWindow::cut(const ImageWindow& part) noexcept {
  top += part.top;
  left += mirrored ? width - part.width - part.left : part.left;
  height = part.height;
  width = part.width;
}

bool WindowChooser::add(const ImageBorder& border) {
  if (!empty()) return false;
  border_ = border;
  return true;
}

CropWindow WindowChooser::choose(std::int64_t height, std::int64_t width, const StepContext& context) const {
  const std::int64_t around = border_ ? 2 * border_->pixels : 0;
  CropWindow window{.height = height + around, .width = width + around};
  for (const auto& change : changes_) change->change(window, context);
  return window;
}

}  // namespace headrace
