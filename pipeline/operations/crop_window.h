// The part of an image that padded crop, centre crop and mirroring leave of it, without touching a pixel. Each of
// the three draws what is its own in its own file.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "headrace/pipeline/decoders/image_size.h"
#include "headrace/pipeline/operation.h"
#include "headrace/pipeline/operations/step.h"

namespace headrace {

// Of the image with its border, if it has one.
struct CropWindow {
  std::int64_t top = 0, left = 0, height = 0, width = 0;
  bool mirrored = false;  // rows are read from right to left
};

struct PlannedPadCrop {
  PadCrop options;
  std::uint16_t number = 0;

  // Error(kDataCorrupt) where the image is too small.
  CropWindow draw(std::int64_t height, std::int64_t width, const StepContext& context) const;
};

struct PlannedFlip {
  Flip options;
  std::uint16_t number = 0;

  bool draw(const StepContext& context) const;
};

// What a centre crop leaves of an image. Error(kDataCorrupt) where the image is smaller.
ImageWindow center_of(const ImageSize& image, const CenterCrop& crop);

// Collects the operations that move pixels, and does them to one record's window.
class WindowChooser {
 public:
  // False where it is not the first.
  bool add(const PlannedPadCrop& crop);
  void add(const PlannedFlip& flip) { turns_.emplace_back(flip); }
  void add(const CenterCrop& crop) { turns_.emplace_back(crop); }

  bool empty() const noexcept { return !crop_ && turns_.empty(); }
  // Null: there is no border.
  const PadCrop* padding() const noexcept { return crop_ ? &crop_->options : nullptr; }

  // Of an image of height x width pixels: what the padded crop leaves, then what the rest does to that. Both need
  // the context's random draws alone. Error(kDataCorrupt) where the image is too small.
  CropWindow crop(std::int64_t height, std::int64_t width, const StepContext& context) const;
  void turn(CropWindow& window, const StepContext& context) const;

 private:
  std::optional<PlannedPadCrop> crop_;  // first of all
  std::vector<std::variant<CenterCrop, PlannedFlip>> turns_;
};

}  // namespace headrace
