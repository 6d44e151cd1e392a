// The part of an image that padded crop, centre crop and mirroring leave of it, without touching a pixel.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "headrace/pipeline/decoders/image_size.h"
#include "headrace/pipeline/operations/sample_stage.h"
#include "headrace/pipeline/operations/step.h"

namespace headrace {

// Of the image with its border, if it has one.
struct CropWindow {
  std::int64_t top = 0, left = 0, height = 0, width = 0;
  bool mirrored = false;  // rows are read from right to left
};

// What a centre crop leaves of an image. Error(kDataCorrupt) where the image is smaller.
ImageWindow center_of(const ImageSize& image, const CenterCrop& crop);

// Collects the operations that move pixels, and does them to one record's window.
class WindowChooser {
 public:
  static bool takes(const Operation& operation);
  // Of an operation it takes; false for a padded crop that is not the first.
  bool add(const PlannedOperation& planned);

  bool empty() const noexcept { return !crop_ && turns_.empty(); }
  // Null: there is no border.
  const PadCrop* padding() const noexcept { return crop_ ? &crop_->options : nullptr; }

  // Of an image of height x width pixels: what the padded crop leaves, then what the rest does to that. Both need
  // the context's random draws alone. Error(kDataCorrupt) where the image is too small.
  CropWindow crop(std::int64_t height, std::int64_t width, const StepContext& context) const;
  void turn(CropWindow& window, const StepContext& context) const;

 private:
  struct Crop {
    PadCrop options;
    std::uint16_t number = 0;
  };
  struct Mirror {
    Flip options;
    std::uint16_t number = 0;

    bool drawn(const StepContext& context) const;
  };
  std::optional<Crop> crop_;  // first of all
  std::vector<std::variant<CenterCrop, Mirror>> turns_;
};

}  // namespace headrace
