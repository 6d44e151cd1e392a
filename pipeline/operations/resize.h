// Resizes images; with a centre crop, only the part that remains.
#pragma once

#include <optional>
#include <variant>

#include "headrace/pipeline/operations/machinery/encoded_image.h"
#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace {

// Returns the part of an image that a centre crop leaves. Throws Error(kDataCorrupt) if the image is smaller.
ImageWindow center_of(const ImageSize& image, const CenterCrop& crop);

using AnyResize = std::variant<Resize, ResizeTo>;

// With a crop computes only what it leaves, from only the input it needs; decodes no others of an encoded image.
class ResizeStep final : public Step {
 public:
  explicit ResizeStep(const AnyResize& resize) : resize_(resize) {}

  bool crops() const noexcept { return crop_.has_value(); }
  void crop_after(const CenterCrop& crop) { crop_ = crop; }
  // Makes the step accept encoded images instead of pixels.
  void decode_by_itself(const DecodeStage& stage) { encoded_ = EncodedImages{.stage = stage}; }
  EncodedImages* encoded_images() noexcept override { return encoded_ ? &*encoded_ : nullptr; }
  bool takes_long() const noexcept override { return true; }
  FieldView run(const FieldView& in, const StepContext& context, StepOutput& output) const override;

 private:
  AnyResize resize_;
  std::optional<CenterCrop> crop_;
  std::optional<EncodedImages> encoded_;
};

}  // namespace headrace
