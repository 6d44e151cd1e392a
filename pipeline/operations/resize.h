// Images made larger or smaller; with a centre crop, only what that leaves of them.
#pragma once

#include <optional>

#include "headrace/pipeline/operations/machinery/encoded_image.h"
#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace {

// What a centre crop leaves of an image. Error(kDataCorrupt) where the image is smaller.
ImageWindow center_of(const ImageSize& image, const CenterCrop& crop);

class ResizeStep final : public Step {
 public:
  explicit ResizeStep(const Resize& options) : options_(options) {}

  const Resize& options() const noexcept { return options_; }
  bool takes_long() const noexcept override { return true; }
  FieldView run(const FieldView& in, const StepContext& context, StepOutput& output) const override;

 private:
  Resize options_;
};

// Makes only what the crop leaves, of the pixels that takes; from an encoded image it decodes no others.
class ResizeAndCropStep final : public Step {
 public:
  ResizeAndCropStep(const Resize& resize, const CenterCrop& crop) : resize_(resize), crop_(crop) {}

  // It is given encoded images, not pixels.
  void decode_by_itself(const DecodeOptions& options) { encoded_ = EncodedImages{.options = options}; }
  EncodedImages* encoded_images() noexcept override { return encoded_ ? &*encoded_ : nullptr; }
  bool takes_long() const noexcept override { return true; }
  FieldView run(const FieldView& in, const StepContext& context, StepOutput& output) const override;

 private:
  Resize resize_;
  CenterCrop crop_;
  std::optional<EncodedImages> encoded_;
};

}  // namespace headrace
