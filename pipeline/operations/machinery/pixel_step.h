// The host form of a pass over pixels: every pixel is read once and written once; what is cut out is cut out of
// the result.
#pragma once

#include <cstdint>

#include "headrace/pipeline/operations/machinery/pixel_pass.h"
#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace {

class PixelStep final : public Step {
 public:
  // An empty pass over `input`.
  explicit PixelStep(const Field& input) : pass_(input, kHostPass) {}

  // Takes the operation in; false where it needs a pass of its own, after this one.
  bool add(const OperationDefinition& operation, const OperationPlace& place) {
    return pass_.add(operation, place);
  }

  FieldView run(const FieldView& in, const StepContext& context, StepOutput& output) const override;

 private:
  // The pixels a pass reads, those of a border included.
  struct Source {
    const std::byte* data = nullptr;
    std::int64_t stride = 0;
  };

  // The image with its border, of which the rows that `window` covers are drawn.
  Source bordered(const FieldView& in, const ImageBorder& border, const CropWindow& window,
                  const StepContext& context) const;
  // Windows so wide may reach beyond the image, whose border need not be drawn.
  bool can_crop_beyond(std::int64_t width) const;
  void cut_holes(const CropWindow& window, const StepContext& context, std::byte* result) const;
  PixelWork work_for(const FieldView& in, const Source& source, const CropWindow& window) const;
  Shape result_shape(const FieldView& in, const CropWindow& window) const;

  PixelPass pass_;
};

}  // namespace headrace
