#include "headrace/pipeline/operations/pixel_step.h"

#include <algorithm>

#include "headrace/pipeline/operations/canvas.h"
#include "headrace/pipeline/operations/cutout.h"
#include "headrace/pipeline/operations/image_shape.h"

namespace headrace {
namespace {

// What of the window lies outside of the image.
RgbBorder border_of(const CropWindow& window, std::int64_t height, std::int64_t width) {
  const auto within = [](std::int64_t outside, std::int64_t extent) {
    return std::clamp<std::int64_t>(outside, 0, extent);
  };
  return {.above = within(-window.top, window.height),
          .below = within(window.top + window.height - height, window.height),
          .left = within(-window.left, window.width),
          .right = within(window.left + window.width - width, window.width)};
}

}  // namespace

PixelStep::PixelStep(const Field& input)
    : from_type_(input.dtype),
      to_type_(input.dtype),
      image_(input.shape.rank() == 3),
      from_layout_(layout_of(input.shape)),
      to_layout_(from_layout_),
      channels_(image_ ? channels_of(input.shape) : 1) {}

bool PixelStep::add_scale(const Normalize& options, const Field& field) {
  if (scale_ || (to_type_ == DType::kU8 && from_type_ == DType::kF32)) return false;
  if (!image_ && options.mean.size() > 1) channels_ = static_cast<std::int64_t>(options.mean.size());
  scale_ = scale_of(options, field.dtype, channels_);
  to_type_ = DType::kF32;
  return true;
}

bool PixelStep::add(const PlannedOperation& planned, const Field& field) {
  const bool taken = take_in(planned, field);
  crops_beyond_ = can_crop_beyond();
  return taken;
}

bool PixelStep::take_in(const PlannedOperation& planned, const Field& field) {
  const Operation& operation = planned.operation;
  const bool values_or_layout = scale_ || to_layout_ != from_layout_ || flat_ || to_type_ != from_type_;
  if (const auto* cutout = std::get_if<Cutout>(&operation)) {
    holes_.push_back({.options = *cutout, .number = planned.number});
    return true;
  }
  if (!holes_.empty()) return false;
  if (WindowChooser::takes(operation)) {
    const bool pads = std::holds_alternative<PadCrop>(operation);
    return !(pads && values_or_layout) && window_.add(planned);
  }
  if (const auto* normalize = std::get_if<Normalize>(&operation)) {
    // After flatten() several means would be taken for channels that are no longer there.
    return !(flat_ && normalize->mean.size() > 1) && add_scale(*normalize, field);
  } else if (const auto* cast = std::get_if<Cast>(&operation)) {
    const bool rounded = to_type_ == DType::kU8 && (scale_ || from_type_ == DType::kF32);
    if (rounded && cast->to == DType::kF32) return false;
    to_type_ = cast->to;
  } else if (const auto* layout = std::get_if<ToLayout>(&operation)) {
    to_layout_ = layout->to;
  } else if (std::holds_alternative<FlattenSample>(operation)) {
    flat_ = true;
  } else {
    return false;
  }
  return true;
}

PixelStep::Source PixelStep::padded(const FieldView& in, const PadCrop& options, const CropWindow& window,
                                    const StepContext& context) const {
  const std::int64_t pixel = channels_ * static_cast<std::int64_t>(size_of(from_type_));
  Canvas& canvas = context.scratch->canvas;
  const CanvasImage image{
      .data = in.bytes.data(), .height = in.shape[0], .width = in.shape[1], .pixel_bytes = pixel};
  draw_on_canvas(canvas, image, options, window.top);
  return {.data = canvas.bytes.data(), .stride = (image.width + 2 * options.pad) * pixel};
}

void PixelStep::cut_holes(const CropWindow& window, const StepContext& context, std::byte* result) const {
  const PixelTarget target{.data = result,
                           .height = window.height,
                           .width = window.width,
                           .channels = channels_,
                           .type = to_type_,
                           .layout = to_layout_};
  for (const Hole& hole : holes_) {
    Philox random = context.random(hole.number);
    cut_out(hole.options, target, random);
  }
}

bool PixelStep::can_crop_beyond() const {
  const PadCrop* padding = window_.padding();
  if (padding == nullptr || padding->padding != Padding::kZero) return false;
  return takes_border({.width = padding->size,
                       .channels = channels_,
                       .from_type = from_type_,
                       .to_type = to_type_,
                       .right = channels_,
                       .deeper = 1,
                       .scale = scale_ ? &*scale_ : nullptr});
}

PixelWork PixelStep::work_for(const FieldView& in, const Source& source, const CropWindow& window) const {
  const auto element = static_cast<std::int64_t>(size_of(from_type_));
  PixelWork work{.height = window.height,
                 .width = window.width,
                 .channels = channels_,
                 .from_type = from_type_,
                 .to_type = to_type_,
                 .layout = to_layout_,
                 .scale = scale_ ? &*scale_ : nullptr};
  if (from_layout_ == ImageLayout::kChannelsFirst) {
    work.right = element;
    work.down = window.width * element;
    work.deeper = window.height * work.down;
    work.from = in.bytes.data();
    return work;
  }
  work.deeper = element;
  work.right = channels_ * element;
  work.down = source.stride;
  work.from = source.data + window.top * source.stride + window.left * work.right;
  if (window.mirrored) {
    work.from += (window.width - 1) * work.right;
    work.right = -work.right;
  }
  return work;
}

Shape PixelStep::result_shape(const FieldView& in, const CropWindow& window) const {
  if (flat_) return Shape{in.shape.rank() == 3 ? window.height * window.width * channels_ : in.shape.elements()};
  if (!image_) return in.shape;
  return to_layout_ == ImageLayout::kChannelsFirst ? Shape{channels_, window.height, window.width}
                                                   : Shape{window.height, window.width, channels_};
}

FieldView PixelStep::run(const FieldView& in, const StepContext& context, StepOutput& output) const {
  const bool planes = from_layout_ == ImageLayout::kChannelsFirst;
  const std::int64_t height = image_ ? in.shape[planes ? 1 : 0] : 1;
  const std::int64_t width = image_ ? in.shape[planes ? 2 : 1] : in.shape.elements() / channels_;
  Source source{.data = in.bytes.data(),
                .stride = width * channels_ * static_cast<std::int64_t>(size_of(from_type_))};
  CropWindow window = window_.crop(height, width, context);
  const PadCrop* const padding = window_.padding();
  if (padding != nullptr && !crops_beyond_) source = padded(in, *padding, window, context);
  window_.turn(window, context);
  if (crops_beyond_) {
    window.top -= padding->pad;
    window.left -= padding->pad;
  }

  PixelWork work = work_for(in, source, window);
  if (crops_beyond_) work.border = border_of(window, height, width);
  const std::int64_t elements = window.height * window.width * channels_;
  const std::span<std::byte> out = output.take(static_cast<std::size_t>(elements) * size_of(to_type_));
  work.to = out.data();
  work.traffic.ahead = context.ahead;
  if (output.is_row() && holes_.empty()) work.traffic.stores = context.stores;
  convert_pixels(work);
  cut_holes(window, context, out.data());
  return {.bytes = out, .shape = result_shape(in, window)};
}

}  // namespace headrace
