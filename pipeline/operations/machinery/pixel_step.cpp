#include "headrace/pipeline/operations/machinery/pixel_step.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

#include "headrace/devices/base/failures.h"
#include "headrace/pipeline/operations/cutout.h"
#include "headrace/pipeline/operations/kernels/canvas.h"

namespace headrace {
namespace {

// Returns the part of the window outside of the image.
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

PixelStep::Source PixelStep::bordered(const FieldView& in, const ImageBorder& border, const CropWindow& window,
                                      const StepContext& context) const {
  const std::int64_t pixel = pass_.channels * static_cast<std::int64_t>(size_of(pass_.from_type));
  Canvas& canvas = context.scratch->canvas;
  const CanvasImage image{
      .data = in.bytes.data(), .height = in.shape[0], .width = in.shape[1], .pixel_bytes = pixel};
  const std::size_t bytes = canvas_bytes(image, border.pixels);
  if (canvas.bytes.capacity() < bytes) context.scratch->charge(bytes);
  draw_on_canvas(canvas, image, border, window.top, window.height);
  return {.data = canvas.bytes.data(), .stride = (image.width + 2 * border.pixels) * pixel};
}

void PixelStep::cut_holes(const CropWindow& window, const StepContext& context, std::byte* result) const {
  const PixelTarget target{.data = result,
                           .height = window.height,
                           .width = window.width,
                           .channels = pass_.channels,
                           .type = pass_.to_type,
                           .layout = pass_.to_layout};
  const ImageSize size{.height = window.height, .width = window.width};
  for (const PlannedHole& hole : pass_.holes) {
    Philox random = context.random(hole.number);
    std::visit([&](const auto& options) { fill_window(target, draw_hole(options, size, random), options.fill); },
               hole.options);
  }
}

bool PixelStep::can_crop_beyond(std::int64_t width) const {
  return pass_.window.border()->padding == Padding::kZero &&
         takes_border({.width = width,
                       .channels = pass_.channels,
                       .from_type = pass_.from_type,
                       .to_type = pass_.to_type,
                       .right = pass_.channels,
                       .deeper = 1,
                       .scale = pass_.scale ? &*pass_.scale : nullptr});
}

PixelWork PixelStep::work_for(const FieldView& in, const Source& source, const CropWindow& window) const {
  const auto element = static_cast<std::int64_t>(size_of(pass_.from_type));
  PixelWork work{.height = window.height,
                 .width = window.width,
                 .channels = pass_.channels,
                 .from_type = pass_.from_type,
                 .to_type = pass_.to_type,
                 .layout = pass_.to_layout,
                 .scale = pass_.scale ? &*pass_.scale : nullptr};
  if (pass_.from_layout == ImageLayout::kChannelsFirst) {
    work.right = element;
    work.down = window.width * element;
    work.deeper = window.height * work.down;
    work.from = in.bytes.data();
    return work;
  }
  work.deeper = element;
  work.right = pass_.channels * element;
  work.down = source.stride;
  work.from = source.data + window.top * source.stride + window.left * work.right;
  if (window.mirrored) {
    work.from += (window.width - 1) * work.right;
    work.right = -work.right;
  }
  return work;
}

Shape PixelStep::result_shape(const FieldView& in, const CropWindow& window) const {
  if (pass_.flat)
    return Shape{in.shape.rank() == 3 ? window.height * window.width * pass_.channels : in.shape.elements()};
  if (!pass_.image) return in.shape;
  return pass_.to_layout == ImageLayout::kChannelsFirst ? Shape{pass_.channels, window.height, window.width}
                                                        : Shape{window.height, window.width, pass_.channels};
}

FieldView PixelStep::run(const FieldView& in, const StepContext& context, StepOutput& output) const {
  const bool planes = pass_.from_layout == ImageLayout::kChannelsFirst;
  const std::int64_t height = pass_.image ? in.shape[planes ? 1 : 0] : 1;
  const std::int64_t width = pass_.image ? in.shape[planes ? 2 : 1] : in.shape.elements() / pass_.channels;
  Source source{.data = in.bytes.data(),
                .stride = width * pass_.channels * static_cast<std::int64_t>(size_of(pass_.from_type))};
  CropWindow window = pass_.window.choose(height, width, context);
  const ImageBorder* const border = pass_.window.border();
  const bool crops_beyond = border != nullptr && can_crop_beyond(window.width);
  if (crops_beyond) {
    window.top -= border->pixels;
    window.left -= border->pixels;
  } else if (border != nullptr) {
    source = bordered(in, *border, window, context);
  }

  PixelWork work = work_for(in, source, window);
  if (crops_beyond) work.border = border_of(window, height, width);
  const std::int64_t elements = window.height * window.width * pass_.channels;
  const std::span<std::byte> out = output.take(static_cast<std::size_t>(elements) * size_of(pass_.to_type));
  work.to = out.data();
  work.traffic.ahead = context.ahead;
  if (output.is_row() && pass_.holes.empty()) work.traffic.stores = context.stores;
  convert_pixels(work);
  cut_holes(window, context, out.data());
  return {.bytes = out, .shape = result_shape(in, window)};
}

bool PixelStep::only_mirrors(const Shape& result) const noexcept {
  return input_ == result && result.rank() == 3 && !result.is_dynamic() && !pass_.changes_values() &&
         pass_.from_type == DType::kU8 && pass_.to_type == DType::kU8 &&
         pass_.from_layout == ImageLayout::kChannelsLast && pass_.to_layout == ImageLayout::kChannelsLast &&
         pass_.holes.empty() && !pass_.flat && pass_.window.border() == nullptr;
}

bool PixelStep::mirrors(const StepContext& context) const {
  return pass_.window.choose(input_[0], input_[1], context).mirrored;
}

namespace {

class MirroredStep final : public Step {
 public:
  MirroredStep(std::unique_ptr<Step> decoding, std::unique_ptr<PixelStep> mirroring)
      : decoding_(std::move(decoding)), mirroring_(std::move(mirroring)) {}

  bool takes_long() const noexcept override { return true; }
  EncodedImages* encoded_images() noexcept override { return decoding_->encoded_images(); }

  FieldView run(const FieldView& in, const StepContext& context, StepOutput& output) const override {
    Scratch& scratch = *context.scratch;
    if (output.jpeg() == nullptr) {
      StepOutput between(scratch, scratch.unmirrored);
      return mirroring_->run(decoding_->run(in, context, between), context, output);
    }
    FieldView made = decoding_->run(in, context, output);
    JpegWindow& window = *output.jpeg()->window;
    if (window.coded != 0) {
      window.mirrored = mirroring_->mirrors(context) ? 1 : 0;
      return made;
    }
    const std::span<std::byte> copy = scratch.grow(scratch.unmirrored, made.bytes.size());
    std::ranges::copy(made.bytes, copy.begin());
    made.bytes = copy;
    return mirroring_->run(made, context, output);
  }

 private:
  std::unique_ptr<Step> decoding_;
  std::unique_ptr<PixelStep> mirroring_;
};

}  // namespace

void merge_mirroring(std::vector<NamedStep>& steps, const Shape& result) {
  if (steps.size() < 2) return;
  NamedStep &decoding = steps[steps.size() - 2], &mirroring = steps.back();
  auto* const pass = dynamic_cast<PixelStep*>(mirroring.step.get());
  if (pass == nullptr || decoding.step->encoded_images() == nullptr || !pass->only_mirrors(result)) return;
  static_cast<void>(mirroring.step.release());
  decoding.step = std::make_unique<MirroredStep>(std::move(decoding.step), std::unique_ptr<PixelStep>(pass));
  decoding.name += " | " + mirroring.name;
  steps.pop_back();
}

void compile_step(StepList& steps, const OperationDefinition& operation, const OperationPlace& place) {
  if (operation.compile(steps, place)) return;
  if (auto* pass = steps.last<PixelStep>(); pass != nullptr && pass->add(operation, place)) {
    steps.extend_last(operation.describe());
    return;
  }
  auto fresh = std::make_unique<PixelStep>(place.before);
  HEADRACE_CHECK(fresh->add(operation, place), operation.describe() + " is in no pass over pixels");
  steps.add(std::move(fresh), operation.describe());
}

}  // namespace headrace
