#include "headrace/pipeline/operations/resize.h"

#include <fmt/format.h>

#include "headrace/pipeline/decoders/image_size.h"
#include "headrace/pipeline/operations/machinery/crop_window.h"
#include "headrace/pipeline/operations/machinery/field_checks.h"
#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace {
namespace {

class ResizeDefinition final : public DataOperation<Resize> {
 public:
  using DataOperation::DataOperation;

  const char* name() const noexcept override { return "resize"; }

  std::string describe() const override { return fmt::format("resize({})", options_.size); }

  Field apply(const Field& before) const override {
    const FieldChecks checks(*this, before);
    checks.want_channels_last();
    checks.want_type({DType::kU8});
    checks.want_size(options_.size);
    Field after = before;
    if (before.shape.is_dynamic()) {
      after.shape = Shape{Shape::kDynamic, Shape::kDynamic, before.shape[2]};
    } else {
      const auto [height, width] = shorter_side_to(options_.size, before.shape[0], before.shape[1]);
      after.shape = Shape{height, width, before.shape[2]};
    }
    return after;
  }

  void compile(StepList& steps, const OperationPlace& /*place*/) const override {
    steps.add(std::make_unique<ResizeStep>(options_), describe());
  }

 private:
  void show(Resize& options, OptionVisitor& visit) const override { visit("size", options.size); }
};

ImageSize resized_to(const Resize& options, const ImageSize& size) {
  const auto [height, width] = shorter_side_to(options.size, size.height, size.width);
  check_pixels(height, width);  // for a line of pixels the longer side grows with the shorter
  return {.height = height, .width = width};
}

}  // namespace

OperationPtr define(Resize options) { return std::make_shared<ResizeDefinition>(options); }

Operations resize(int size) { return Operation{Resize{.size = size}}; }

FieldView ResizeStep::run(const FieldView& in, const StepContext& context, StepOutput& output) const {
  const ImageSize size{.height = in.shape[0], .width = in.shape[1]};
  const ImageSize result = resized_to(options_, size);
  const std::int64_t channels = in.shape[2];
  const std::span<std::byte> out = output.take(static_cast<std::size_t>(result.height * result.width * channels));
  context.scratch->resampler.resize(as_u8(in.bytes.data()), size, as_u8(out).data(), result, channels);
  return {.bytes = out, .shape = {result.height, result.width, channels}};
}

FieldView ResizeAndCropStep::run(const FieldView& in, const StepContext& context, StepOutput& output) const {
  Scratch& scratch = *context.scratch;
  const auto plan = [&](const ImageSize& size) {
    const ImageSize result = resized_to(resize_, size);
    return scratch.resampler.plan(size, result, center_of(result, crop_));
  };
  if (encoded_) {
    EncodedImage image(in.bytes, context.record, *encoded_, scratch);
    return resampled(image.decode(plan(image.size())), crop_.size, scratch.resampler, output);
  }
  const ImageWindow used = plan({.height = in.shape[0], .width = in.shape[1]});
  return resampled(part_of(in, used), crop_.size, scratch.resampler, output);
}

}  // namespace headrace
