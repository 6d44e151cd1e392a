// The part of an image that is left by operations which move pixels and change none: crops, mirroring. It is found
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

// Of the image with its border, if it has one.
struct CropWindow {
  std::int64_t top = 0, left = 0, height = 0, width = 0;
  bool mirrored = false;  // rows are read from right to left

  // Leaves `part` of what is seen of it.
  void cut(const ImageWindow& part) noexcept;
};

// What one operation does to a record's window. Immutable and thread-safe.
class WindowChange {
 public:
  virtual ~WindowChange() = default;

  // `window` is what the operations before left. Needs the context's random draws alone. Error(kDataCorrupt) where
  // it is too small.
  virtual void change(CropWindow& window, const StepContext& context) const = 0;
};

// Collects what the operations of a pass do to windows, and does it to one record's.
class WindowChooser {
 public:
  // Puts a border around the image. False where anything else would be done before that.
  bool add(const ImageBorder& border);
  void add(std::shared_ptr<const WindowChange> change) { changes_.push_back(std::move(change)); }

  bool empty() const noexcept { return !border_ && changes_.empty(); }
  // Null: there is none.
  const ImageBorder* border() const noexcept { return border_ ? &*border_ : nullptr; }

  // Of an image of height x width pixels without its border. Throws what the changes throw.
  CropWindow choose(std::int64_t height, std::int64_t width, const StepContext& context) const;

 private:
  std::optional<ImageBorder> border_;
  std::vector<std::shared_ptr<const WindowChange>> changes_;
};

}  // namespace headrace
