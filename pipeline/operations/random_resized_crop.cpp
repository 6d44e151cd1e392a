#include "headrace/pipeline/operations/random_resized_crop.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "headrace/pipeline/operations/decode.h"
#include "headrace/pipeline/operations/kernels/portable_math.h"
#include "headrace/pipeline/operations/machinery/encoded_image.h"
#include "headrace/pipeline/operations/machinery/field_checks.h"
#include "headrace/pipeline/operations/machinery/moving_operation.h"
#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace {
namespace {

// Decodes only the window of an encoded image; reads only the window of pixels.
class RandomResizedCropStep final : public Step {
 public:
  RandomResizedCropStep(const RandomResizedCrop& options, std::uint16_t number)
      : options_(options), number_(number) {}

  // Makes the step accept encoded images instead of pixels.
  void decode_by_itself(const DecodeStage& stage) { encoded_ = EncodedImages{.stage = stage}; }
  EncodedImages* encoded_images() noexcept override { return encoded_ ? &*encoded_ : nullptr; }
  bool takes_long() const noexcept override { return true; }

  FieldView run(const FieldView& in, const StepContext& context, StepOutput& output) const override {
    Scratch& scratch = *context.scratch;
    Philox random = context.random(number_);
    const auto draw = [&](const ImageSize& image) {
      return Resizing{.window = draw_window(options_, image, random),
                      .result = {.height = options_.size, .width = options_.size},
                      .part = {.height = options_.size, .width = options_.size}};
    };
    if (encoded_) {
      EncodedImage image(in.bytes, context.record, *encoded_, scratch);
      return image.resize_part(draw(image.size()), output);
    }
    return resize_part(in, draw({.height = in.shape[0], .width = in.shape[1]}), scratch.resampler, output);
  }

 private:
  RandomResizedCrop options_;
  std::uint16_t number_;
  std::optional<EncodedImages> encoded_;
};

class RandomWindow final : public PixelMover {
 public:
  RandomWindow(const RandomResizedCrop& options, std::uint16_t number) : options_(options), number_(number) {}

  PixelMove move(const ImageSize& image, const StepContext& context) const override {
    Philox random = context.random(number_);
    return {.window = draw_window(options_, image, random),
            .size = {.height = options_.size, .width = options_.size}};
  }

 private:
  RandomResizedCrop options_;
  std::uint16_t number_;
};

class RandomResizedCropDefinition final : public MovingOperation<RandomResizedCrop> {
 public:
  using MovingOperation::MovingOperation;

  bool is_random() const noexcept override { return true; }

  Field apply(const Field& before) const override {
    const FieldChecks checks(*this, before);
    checks.want_channels_last();
    checks.want_type({DType::kU8});
    checks.want_size(options_.size);
    checks.want_area_and_ratio(options_.area, options_.ratio);
    return squared(before, options_.size);
  }

  bool compile(StepList& steps, const OperationPlace& place) const override {
    add_decoding(steps, std::make_unique<RandomResizedCropStep>(options_, place.number), describe());
    return true;
  }

 private:
  std::shared_ptr<const PixelMover> mover(std::uint16_t number) const override {
    return std::make_shared<RandomWindow>(options_, number);
  }
};

constexpr int kTries = 10;

ImageWindow fallback(const RandomResizedCrop& options, const ImageSize& image) {
  const auto height = static_cast<double>(image.height);
  const auto width = static_cast<double>(image.width);
  ImageWindow window{.height = image.height, .width = image.width};
  if (width / height < options.ratio[0]) {
    window.height = std::clamp<std::int64_t>(std::lround(width / options.ratio[0]), 1, image.height);
  } else if (width / height > options.ratio[1]) {
    window.width = std::clamp<std::int64_t>(std::lround(height * options.ratio[1]), 1, image.width);
  }
  window.top = (image.height - window.height) / 2;
  window.left = (image.width - window.width) / 2;
  return window;
}

}  // namespace

OperationPtr define(RandomResizedCrop options) { return std::make_shared<RandomResizedCropDefinition>(options); }

Operations random_resized_crop(RandomResizedCrop options) { return Operation{options}; }

ImageWindow draw_window(const RandomResizedCrop& options, const ImageSize& image, Philox& random) {
  const double area = static_cast<double>(image.height) * static_cast<double>(image.width);
  const double low = logarithm(options.ratio[0]);
  const double high = logarithm(options.ratio[1]);
  for (int i = 0; i < kTries; ++i) {
    const double share =
        options.area[0] + (static_cast<double>(options.area[1]) - options.area[0]) * random.uniform();
    const double ratio = exponential(low + (high - low) * random.uniform());
    const auto width = static_cast<std::int64_t>(std::lround(std::sqrt(area * share * ratio)));
    const auto height = static_cast<std::int64_t>(std::lround(std::sqrt(area * share / ratio)));
    if (width < 1 || height < 1 || width > image.width || height > image.height) continue;
    ImageWindow window{.height = height, .width = width};
    window.top = random.below(static_cast<std::uint32_t>(image.height - height + 1));
    window.left = random.below(static_cast<std::uint32_t>(image.width - width + 1));
    return window;
  }
  return fallback(options, image);
}

}  // namespace headrace
