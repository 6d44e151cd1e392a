// The host form of a pass over pixels: every pixel is read once and written once; holes are cut into the result.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/pipeline/operations/machinery/pixel_pass.h"
#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace {

class PixelStep final : public Step {
 public:
  // An empty pass over `input`.
  explicit PixelStep(const Field& input) : pass_(input, kHostPass), input_(input.shape) {}

  // Adds the operation. Returns false if it needs a separate pass after this one.
  bool add(const OperationDefinition& operation, const OperationPlace& place) {
    return pass_.add(operation, place);
  }

  FieldView run(const FieldView& in, const StepContext& context, StepOutput& output) const override;

  // Returns whether it gives the image u8 (H, W, C) that it reads, or that image mirrored, if it gives this shape.
  bool only_mirrors(const Shape& result) const noexcept;
  // Returns which, for a record. REQUIRES: only_mirrors().
  bool mirrors(const StepContext& context) const;

 private:
  // The pixels that a pass reads, including a border.
  struct Source {
    const std::byte* data = nullptr;
    std::int64_t stride = 0;
  };

  // Returns the image with its border, with the rows that `window` covers drawn.
  Source bordered(const FieldView& in, const ImageBorder& border, const CropWindow& window,
                  const StepContext& context) const;
  // Returns whether windows this wide may reach beyond the image, whose border need not be drawn.
  bool can_crop_beyond(std::int64_t width) const;
  void cut_holes(const CropWindow& window, const StepContext& context, std::byte* result) const;
  PixelWork work_for(const FieldView& in, const Source& source, const CropWindow& window) const;
  Shape result_shape(const FieldView& in, const CropWindow& window) const;

  PixelPass pass_;
  Shape input_;
};

// If the last step only mirrors what the one before it decodes and resizes, makes one of both, so that a device
// may do both. `result` is the shape after them.
void merge_mirroring(std::vector<NamedStep>& steps, const Shape& result);

// Compiles the operation: as a step of its own, or as part of the pass over pixels that is the last step or a new
// one.
void compile_step(StepList& steps, const OperationDefinition& operation, const OperationPlace& place);

}  // namespace headrace
