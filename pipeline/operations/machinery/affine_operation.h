// Operations that turn, shear, scale and move a u8 image, and the masks and boxes of its record with it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "headrace/pipeline/operations/kernels/warp_kernels.h"
#include "headrace/pipeline/operations/machinery/field_checks.h"
#include "headrace/pipeline/operations/machinery/moving_operation.h"
#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace {

// Draws the map of one image. Immutable and thread-safe.
class AffineDraw {
 public:
  virtual ~AffineDraw() = default;
  // Returns where the result's points come from; std::nullopt: the image stays as it is.
  virtual std::optional<AffineMap> draw(const ImageSize& image, Philox& random) const = 0;
};

// The interpolation of pixels, and the pixel that shows beyond the image.
struct WarpStyle {
  Interpolation interpolation = Interpolation::kNearest;
  std::vector<std::byte> fill;  // a pixel
};
// Returns the style for images of this many channels. REQUIRES: want_fill() accepted `fill`.
WarpStyle warp_style(Interpolation interpolation, const std::vector<float>& fill, std::int64_t channels);
// Refuses an image of more than four channels, and a fill that is none of its pixels.
void want_fill(const FieldChecks& checks, const Field& image, const std::vector<float>& fill);
// Refuses a range that is none, or that reaches beyond `limit` degrees either way.
inline constexpr float kMaxDegrees = 1e6F, kMaxShear = 89;
void want_degrees(const FieldChecks& checks, const std::array<float, 2>& degrees, const char* what, float limit);
// Draws the u8 image anew.
void warp(const WarpWork& work, Interpolation interpolation);

// Returns the step on images, and what moves the other fields with them.
std::unique_ptr<Step> affine_step(std::shared_ptr<const AffineDraw> draw, WarpStyle style, std::uint16_t number);
std::shared_ptr<const PixelMover> affine_mover(std::shared_ptr<const AffineDraw> draw, std::uint16_t number);

// An operation with members `interpolation`, `fill` and `probability`. `Drawing`, made of the options, draws.
template <typename Options, typename Drawing>
class AffineOperation : public MovingOperation<Options> {
 public:
  using MovingOperation<Options>::MovingOperation;

  bool is_random() const noexcept final { return true; }
  Field apply(const Field& before) const final {
    const FieldChecks checks(*this, before);
    checks.want_channels_last();
    checks.want_type({DType::kU8});
    checks.want_probability(this->options_.probability);
    want_fill(checks, before, this->options_.fill);
    check(checks);
    return before;
  }
  bool compile(StepList& steps, const OperationPlace& place) const final {
    const Options& options = this->options_;
    steps.add(affine_step(std::make_shared<Drawing>(options),
                          warp_style(options.interpolation, options.fill, place.before.shape[2]), place.number),
              this->describe());
    return true;
  }

 protected:
  // Refuses options that are wrong.
  virtual void check(const FieldChecks& checks) const = 0;

 private:
  std::shared_ptr<const PixelMover> mover(std::uint16_t number) const final {
    return affine_mover(std::make_shared<Drawing>(this->options_), number);
  }
};

}  // namespace headrace
