// Padded crop, centre crop, mirroring, normalisation, cast, layout and flattening in one pass over the pixels;
// what is cut out is cut out of the result.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "headrace/pipeline/operations/crop_window.h"
#include "headrace/pipeline/operations/kernels/pixel_kernels.h"
#include "headrace/pipeline/operations/sample_stage.h"
#include "headrace/pipeline/operations/step.h"

namespace headrace {

// Collects operations while they can be done in one pass.
class PixelStep {
 public:
  // An empty pass over `input`.
  explicit PixelStep(const Field& input);

  // Takes the operation in; false where it needs a pass of its own, after this one. `field` is its input.
  bool add(const PlannedOperation& planned, const Field& field);

  FieldView run(const FieldView& in, const StepContext& context, StepOutput& output) const;

 private:
  struct Hole {
    Cutout options;
    std::uint16_t number = 0;
  };
  // The pixels a pass reads, those of a border included.
  struct Source {
    const std::byte* data = nullptr;
    std::int64_t stride = 0;
  };

  bool take_in(const PlannedOperation& planned, const Field& field);
  bool add_scale(const Normalize& options, const Field& field);
  // The image with its border, of which the rows that `window` covers are drawn.
  Source padded(const FieldView& in, const PadCrop& options, const CropWindow& window,
                const StepContext& context) const;
  bool can_crop_beyond() const;
  void cut_holes(const CropWindow& window, const StepContext& context, std::byte* result) const;
  PixelWork work_for(const FieldView& in, const Source& source, const CropWindow& window) const;
  Shape result_shape(const FieldView& in, const CropWindow& window) const;

  DType from_type_;
  DType to_type_;
  bool image_ = false;  // rank 3; otherwise one long row of elements
  ImageLayout from_layout_;
  ImageLayout to_layout_;
  std::int64_t channels_ = 1;  // that values are scaled by; 1: all alike
  bool flat_ = false;
  WindowChooser window_;  // first of all
  std::optional<ChannelScale> scale_;
  std::vector<Hole> holes_;    // cut last of all, into the result
  bool crops_beyond_ = false;  // the window may reach beyond the image, whose border need not be drawn
};

}  // namespace headrace
