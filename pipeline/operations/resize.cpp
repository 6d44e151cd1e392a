#include "headrace/pipeline/operations/resize.h"

#include "headrace/pipeline/decoders/image_size.h"
#include "headrace/pipeline/operations/decode.h"
#include "headrace/pipeline/operations/machinery/crop_window.h"
#include "headrace/pipeline/operations/machinery/field_checks.h"
#include "headrace/pipeline/operations/machinery/moving_operation.h"
#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace {
namespace {

std::shared_ptr<const PixelMover> resize_mover(const AnyResize& options);

class ResizeDefinition final : public MovingOperation<Resize> {
 public:
  using MovingOperation::MovingOperation;

  Field apply(const Field& before) const override {
    const FieldChecks checks(*this, before);
    checks.want_channels_last();
    checks.want_type({DType::kU8});
    checks.want_size(options_.size);
    Field after = before;
    after.layout = ImageLayout::kChannelsLast;
    if (before.shape.is_dynamic()) {
      after.shape = Shape{Shape::kDynamic, Shape::kDynamic, before.shape[2]};
    } else {
      const auto [height, width] = shorter_side_to(options_.size, before.shape[0], before.shape[1]);
      after.shape = Shape{height, width, before.shape[2]};
    }
    return after;
  }

  bool compile(StepList& steps, const OperationPlace& /*place*/) const override {
    add_decoding(steps, std::make_unique<ResizeStep>(options_), describe());
    return true;
  }

 private:
  std::shared_ptr<const PixelMover> mover(std::uint16_t /*number*/) const override {
    return resize_mover(options_);
  }
};

class ResizeToDefinition final : public MovingOperation<ResizeTo> {
 public:
  using MovingOperation::MovingOperation;

  Field apply(const Field& before) const override {
    const FieldChecks checks(*this, before);
    checks.want_channels_last();
    checks.want_type({DType::kU8});
    checks.want_size(options_.height);
    checks.want_size(options_.width);
    Field after = before;
    after.layout = ImageLayout::kChannelsLast;
    after.shape = Shape{options_.height, options_.width, before.shape[2]};
    return after;
  }

  bool compile(StepList& steps, const OperationPlace& /*place*/) const override {
    add_decoding(steps, std::make_unique<ResizeStep>(options_), describe());
    return true;
  }

 private:
  std::shared_ptr<const PixelMover> mover(std::uint16_t /*number*/) const override {
    return resize_mover(options_);
  }
};

ImageSize size_after(const Resize& options, const ImageSize& size) {
  const auto [height, width] = shorter_side_to(options.size, size.height, size.width);
  check_pixels(height, width);  // for a line of pixels the longer side grows with the shorter
  return {.height = height, .width = width};
}

ImageSize size_after(const ResizeTo& options, const ImageSize& /*size*/) {
  return {.height = options.height, .width = options.width};
}

ImageSize resized_to(const AnyResize& options, const ImageSize& size) {
  return std::visit([&](const auto& one) { return size_after(one, size); }, options);
}

class ResizeMover final : public PixelMover {
 public:
  explicit ResizeMover(AnyResize options) : options_(std::move(options)) {}

  PixelMove move(const ImageSize& image, const StepContext& /*context*/) const override {
    return {.window = {.height = image.height, .width = image.width}, .size = resized_to(options_, image)};
  }

 private:
  AnyResize options_;
};

std::shared_ptr<const PixelMover> resize_mover(const AnyResize& options) {
  return std::make_shared<ResizeMover>(options);
}

}  // namespace

OperationPtr define(Resize options) { return std::make_shared<ResizeDefinition>(options); }

OperationPtr define(ResizeTo options) { return std::make_shared<ResizeToDefinition>(options); }

Operations resize(int size) { return Operation{Resize{.size = size}}; }

Operations resize(int height, int width) { return Operation{ResizeTo{.height = height, .width = width}}; }

FieldView ResizeStep::run(const FieldView& in, const StepContext& context, StepOutput& output) const {
  const auto resizing = [&](const ImageSize& size) {
    const ImageSize result = resized_to(resize_, size);
    return Resizing{
        .window = {.height = size.height, .width = size.width},
        .result = result,
        .part = crop_ ? center_of(result, *crop_) : ImageWindow{.height = result.height, .width = result.width}};
  };
  if (encoded_) {
    EncodedImage image(in.bytes, context.record, *encoded_, *context.scratch);
    return image.resize_part(resizing(image.size()), output);
  }
  return resize_part(in, resizing({.height = in.shape[0], .width = in.shape[1]}), context.scratch->resampler,
                     output);
}

}  // namespace headrace
