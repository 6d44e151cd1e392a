#include <cstring>

#include "headrace/pipeline/operations/machinery/field_checks.h"
#include "headrace/pipeline/operations/machinery/moving_operation.h"
#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace {
namespace {

bool turns_over(const VerticalFlip& options, std::uint16_t number, const StepContext& context) {
  return context.random(number).uniform() < options.probability;
}

class VerticalFlipStep final : public Step {
 public:
  VerticalFlipStep(const VerticalFlip& options, std::uint16_t number) : options_(options), number_(number) {}

  FieldView run(const FieldView& in, const StepContext& context, StepOutput& output) const override {
    const std::span<std::byte> out = output.take(in.bytes.size());
    if (turns_over(options_, number_, context)) {
      const auto height = static_cast<std::size_t>(in.shape[0]);
      const std::size_t row = in.bytes.size() / height;
      for (std::size_t y = 0; y < height; ++y) {
        std::memcpy(out.data() + y * row, in.bytes.data() + (height - 1 - y) * row, row);
      }
    } else {
      std::memcpy(out.data(), in.bytes.data(), out.size());
    }
    return {.bytes = out, .shape = in.shape};
  }

 private:
  VerticalFlip options_;
  std::uint16_t number_;
};

class VerticalFlipMover final : public PixelMover {
 public:
  VerticalFlipMover(const VerticalFlip& options, std::uint16_t number) : options_(options), number_(number) {}

  PixelMove move(const ImageSize& image, const StepContext& context) const override {
    PixelMove move{.size = image, .source = AffineMap{}};
    if (turns_over(options_, number_, context)) {
      move.source->yy = -1;
      move.source->y0 = static_cast<double>(image.height);
    }
    return move;
  }

 private:
  VerticalFlip options_;
  std::uint16_t number_;
};

class VerticalFlipDefinition final : public MovingOperation<VerticalFlip> {
 public:
  using MovingOperation::MovingOperation;

  bool is_random() const noexcept override { return true; }

  Field apply(const Field& before) const override {
    const FieldChecks checks(*this, before);
    checks.want_channels_last();
    checks.want_type({DType::kU8, DType::kF32});
    checks.want_probability(options_.probability);
    return before;
  }

  bool compile(StepList& steps, const OperationPlace& place) const override {
    steps.add(std::make_unique<VerticalFlipStep>(options_, place.number), describe());
    return true;
  }

 private:
  std::shared_ptr<const PixelMover> mover(std::uint16_t number) const override {
    return std::make_shared<VerticalFlipMover>(options_, number);
  }
};

}  // namespace

OperationPtr define(VerticalFlip options) { return std::make_shared<VerticalFlipDefinition>(options); }

Operations vertical_flip(float probability) { return Operation{VerticalFlip{.probability = probability}}; }

}  // namespace headrace
