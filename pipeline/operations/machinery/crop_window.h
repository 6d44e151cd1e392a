// The part of an image left by operations that move pixels without changing them: crops, mirroring. It is computed
// without touching a pixel. Each such operation implements WindowChange in its own file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "headrace/pipeline/decoders/image_size.h"
#include "headrace/pipeline/operations/kernels/canvas.h"
#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace {

// A window of the image, including its border if it has one.
struct CropWindow {
  std::int64_t top = 0, left = 0, height = 0, width = 0;
  bool mirrored = false;  // rows are read from right to left

  // Reduces the window to `part` of its visible content.
  void cut(const ImageWindow& part) noexcept;
};

// The effect of one operation on a record's window. Immutable and thread-safe.
class WindowChange {
 public:
  virtual ~WindowChange() = default;

  // Changes `window`, the result of the preceding operations. Needs only the context's random draws. Throws
  // Error(kDataCorrupt) if it is too small.
  virtual void change(CropWindow& window, const StepContext& context) const = 0;
};

// Collects the window changes of a pass and applies them to a record.
class WindowChooser {
 public:
  // Puts a border around the image. Returns false if another operation would come before it.
  bool add(const ImageBorder& border);
  void add(std::shared_ptr<const WindowChange> change) { changes_.push_back(std::move(change)); }

  bool empty() const noexcept { return !border_ && changes_.empty(); }
  // Returns the border; null if there is none.
  const ImageBorder* border() const noexcept { return border_ ? &*border_ : nullptr; }

  // Returns the window of an image of height x width pixels without its border. Throws what the changes throw.
  CropWindow choose(std::int64_t height, std::int64_t width, const StepContext& context) const;

 private:
  std::optional<ImageBorder> border_;
  std::vector<std::shared_ptr<const WindowChange>> changes_;
};

}  // namespace headrace
