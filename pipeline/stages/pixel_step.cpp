#include "headrace/pipeline/stages/pixel_step.h"

#include <fmt/format.h>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/stages/canvas.h"
#include "headrace/pipeline/stages/cutout.h"
#include "headrace/pipeline/stages/image_shape.h"

namespace headrace {

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
  const double unit = field.dtype == DType::kU8 ? 255.0 : 1.0;
  std::vector<float> scales, shifts;
  for (std::int64_t c = 0; c < channels_; ++c) {
    const std::size_t entry = options.mean.size() == 1 ? 0 : static_cast<std::size_t>(c);
    const double deviation = options.std[entry];
    scales.push_back(static_cast<float>(1.0 / (unit * deviation)));
    shifts.push_back(static_cast<float>(-static_cast<double>(options.mean[entry]) / deviation));
  }
  scale_.emplace(std::move(scales), std::move(shifts));
  to_type_ = DType::kF32;
  return true;
}

bool PixelStep::add(const PlannedOperation& planned, const Field& field) {
  const Operation& operation = planned.operation;
  const bool values_or_layout = scale_ || to_layout_ != from_layout_ || flat_ || to_type_ != from_type_;
  if (const auto* cutout = std::get_if<Cutout>(&operation)) {
    holes_.push_back({.options = *cutout, .number = planned.number});
    return true;
  }
  if (!holes_.empty()) return false;
  if (const auto* crop = std::get_if<PadCrop>(&operation)) {
    if (moves_pixels() || values_or_layout) return false;
    crop_ = {.options = *crop, .number = planned.number};
  } else if (const auto* center = std::get_if<CenterCrop>(&operation)) {
    turns_.emplace_back(Center{center->size});
  } else if (const auto* flip = std::get_if<Flip>(&operation)) {
    turns_.emplace_back(Mirror{.options = *flip, .number = planned.number});
  } else if (const auto* normalize = std::get_if<Normalize>(&operation)) {
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

PixelStep::Window PixelStep::pad_and_crop(const FieldView& in, const StepContext& context) const {
  const PadCrop& options = crop_->options;
  const std::int64_t pixel = channels_ * static_cast<std::int64_t>(size_of(from_type_));
  const std::int64_t height = in.shape[0], width = in.shape[1];
  const std::int64_t down = height + 2 * options.pad - options.size;
  const std::int64_t right = width + 2 * options.pad - options.size;
  if (down < 0 || right < 0 ||
      (options.padding == Padding::kReflect && (options.pad >= height || options.pad >= width))) {
    throw Error(
        ErrorCode::kDataCorrupt,
        fmt::format("an image of {} x {} is too small for {}", height, width, describe(Operation{options})),
        "resize() first");
  }
  Philox random = context.random(crop_->number);
  const std::int64_t top = random.below(static_cast<std::uint32_t>(down + 1));
  const std::int64_t left = random.below(static_cast<std::uint32_t>(right + 1));
  Canvas& canvas = context.scratch->canvas;
  const CanvasImage image{.data = in.bytes.data(), .height = height, .width = width, .pixel_bytes = pixel};
  draw_on_canvas(canvas, image, options, top);
  return {.data = canvas.bytes.data(),
          .stride = (width + 2 * options.pad) * pixel,
          .top = top,
          .left = left,
          .height = options.size,
          .width = options.size};
}

bool PixelStep::Mirror::drawn(const StepContext& context) const {
  const bool alternating = options.draw == FlipDraw::kAlternating;
  StepContext keyed = context;
  if (alternating) keyed.pass = 0;
  const bool mirrored = keyed.random(number).uniform() < options.probability;
  return mirrored ^ (alternating && context.pass % 2 == 1);
}

void PixelStep::turn(Window& window, const StepContext& context) const {
  for (const auto& turn : turns_) {
    if (const auto* mirror = std::get_if<Mirror>(&turn)) {
      window.mirrored ^= mirror->drawn(context);
      continue;
    }
    const std::int64_t size = std::get<Center>(turn).size;
    const std::int64_t down = window.height - size, right = window.width - size;
    if (down < 0 || right < 0) {
      throw Error(
          ErrorCode::kDataCorrupt,
          fmt::format("an image of {} x {} is smaller than center_crop({})", window.height, window.width, size),
          "resize() first");
    }
    window.top += down / 2;
    window.left += window.mirrored ? right - right / 2 : right / 2;
    window.height = window.width = size;
  }
}

void PixelStep::cut_holes(const Window& window, const StepContext& context, std::byte* result) const {
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

PixelWork PixelStep::work_for(const FieldView& in, const Window& window) const {
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
  work.down = window.stride;
  work.from = window.data + window.top * window.stride + window.left * work.right;
  if (window.mirrored) {
    work.from += (window.width - 1) * work.right;
    work.right = -work.right;
  }
  return work;
}

Shape PixelStep::result_shape(const FieldView& in, const Window& window) const {
  if (flat_) return Shape{in.shape.rank() == 3 ? window.height * window.width * channels_ : in.shape.elements()};
  if (!image_) return in.shape;
  return to_layout_ == ImageLayout::kChannelsFirst ? Shape{channels_, window.height, window.width}
                                                   : Shape{window.height, window.width, channels_};
}

FieldView PixelStep::run(const FieldView& in, const StepContext& context, StepOutput& output) const {
  Window window{.data = in.bytes.data(), .height = 1};
  if (image_) {
    const bool planes = from_layout_ == ImageLayout::kChannelsFirst;
    window.height = in.shape[planes ? 1 : 0];
    window.width = in.shape[planes ? 2 : 1];
  } else {
    window.width = in.shape.elements() / channels_;
  }
  window.stride = window.width * channels_ * static_cast<std::int64_t>(size_of(from_type_));
  if (crop_) window = pad_and_crop(in, context);
  turn(window, context);

  PixelWork work = work_for(in, window);
  const std::int64_t elements = window.height * window.width * channels_;
  const std::span<std::byte> out = output.take(static_cast<std::size_t>(elements) * size_of(to_type_));
  work.to = out.data();
  if (output.is_row() && holes_.empty()) work.stores = context.stores;
  convert_pixels(work);
  cut_holes(window, context, out.data());
  return {.bytes = out, .shape = result_shape(in, window)};
}

}  // namespace headrace
