// Padded crop, centre crop, mirroring, normalisation, cast, layout and flattening in one pass over the pixels;
// what is cut out is cut out of the result.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "headrace/pipeline/engine/planner.h"
#include "headrace/pipeline/stages/pixel_kernels.h"
#include "headrace/pipeline/stages/step.h"

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
  struct Crop {
    PadCrop options;
    std::uint16_t number = 0;
  };
  struct Mirror {
    Flip options;
    std::uint16_t number = 0;

    bool drawn(const StepContext& context) const;
  };
  struct Center {
    std::int64_t size = 0;
  };
  struct Hole {
    Cutout options;
    std::uint16_t number = 0;
  };
  // The part of an image a pass reads.
  struct Window {
    const std::byte* data = nullptr;
    std::int64_t stride = 0;
    std::int64_t top = 0, left = 0, height = 0, width = 0;
    bool mirrored = false;
  };

  bool add_scale(const Normalize& options, const Field& field);
  bool moves_pixels() const noexcept { return crop_.has_value() || !turns_.empty(); }
  Window pad_and_crop(const FieldView& in, const StepContext& context) const;
  void turn(Window& window, const StepContext& context) const;
  void cut_holes(const Window& window, const StepContext& context, std::byte* result) const;
  PixelWork work_for(const FieldView& in, const Window& window) const;
  Shape result_shape(const FieldView& in, const Window& window) const;

  DType from_type_;
  DType to_type_;
  bool image_ = false;  // rank 3; otherwise one long row of elements
  ImageLayout from_layout_;
  ImageLayout to_layout_;
  std::int64_t channels_ = 1;  // that values are scaled by; 1: all alike
  bool flat_ = false;
  std::optional<Crop> crop_;  // first of all
  std::vector<std::variant<Center, Mirror>> turns_;
  std::optional<ChannelScale> scale_;
  std::vector<Hole> holes_;  // cut last of all, into the result
};

}  // namespace headrace
