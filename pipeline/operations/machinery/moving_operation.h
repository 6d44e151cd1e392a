// Operations that move the pixels of an image, and the fields of its record that they move along.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headrace/pipeline/decoders/image_size.h"
#include "headrace/pipeline/operations/kernels/affine_map.h"
#include "headrace/pipeline/operations/kernels/canvas.h"
#include "headrace/pipeline/operations/machinery/crop_window.h"
#include "headrace/pipeline/operations/machinery/definition.h"
#include "headrace/pipeline/operations/machinery/pixel_step.h"
#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace {

// The move of one image's pixels: a window of it is resized, then mirrored; or a map gives the source of each
// pixel of the result.
struct PixelMove {
  ImageWindow window = {};  // may reach beyond the image, where there is padding
  ImageSize size;           // of the result
  bool mirrored = false;
  Padding padding = Padding::kZero;
  std::optional<AffineMap> source = {};  // from the result to an image of this size; the window is then not used
};

// Says how an operation moves a record's pixels. Immutable and thread-safe.
class PixelMover {
 public:
  virtual ~PixelMover() = default;
  // Draws as the operation itself does: the same context gives the same window. Throws what the operation throws.
  virtual PixelMove move(const ImageSize& image, const StepContext& context) const = 0;
};

// Returns the mover of an operation that changes the window of an image with this border around it.
std::shared_ptr<const PixelMover> window_mover(std::shared_ptr<const WindowChange> change,
                                               ImageBorder border = {});

// Returns the fields after `operation` has made `image` of its own. Throws ConfigError if one of those to be moved
// along is none of the sample's, or cannot be moved.
Fields move_along(const OperationDefinition& operation, const Along& along, Fields fields, const Field& image);
// Returns the step that runs `image_step` and moves the others along. `before` are the fields that it reads.
std::unique_ptr<const SampleStep> along_step(const Along& along, const Fields& before, const std::string& image,
                                             std::unique_ptr<const Step> image_step,
                                             std::shared_ptr<const PixelMover> mover);

// An operation with a member `along` among its options. Without fields to move along it changes
// its own field alone, as all others do.
template <typename Options>
class MovingOperation : public DataOperation<Options> {
 public:
  using DataOperation<Options>::DataOperation;

  bool spans_fields() const noexcept final { return !along().empty(); }
  bool touches(const std::string& name) const final {
    const auto is_among = [&](const std::vector<std::string>& names) {
      return std::ranges::any_of(names, [&](const std::string& each) {
        return each == name || (along().lost == LostBoxes::kDrop && each + "_length" == name);
      });
    };
    return name == this->field() || is_among(along().masks) || is_among(along().boxes) ||
           is_among(along().with_boxes);
  }
  Fields apply_to_sample(const Fields& before) const final {
    Fields after = OperationDefinition::apply_to_sample(before);
    if (along().empty()) return after;
    return move_along(*this, along(), after, after[find_field(after, this->field())]);
  }
  std::unique_ptr<const SampleStep> create_step(std::uint16_t number, const Fields& before) const final {
    if (along().empty()) return nullptr;
    StepList steps;
    compile_step(steps, *this, {.number = number, .before = before[find_field(before, this->field())]});
    return along_step(along(), before, this->field(), std::move(steps.take().front().step), mover(number));
  }
  OperationPtr with_along(const Along& fields) const final {
    Options options = this->options_;
    options.along = fields;
    return define(std::move(options));
  }

 protected:
  virtual std::shared_ptr<const PixelMover> mover(std::uint16_t number) const = 0;

 private:
  const Along& along() const noexcept { return this->options_.along; }
};

}  // namespace headrace
