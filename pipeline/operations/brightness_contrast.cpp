#include "headrace/pipeline/operations/brightness_contrast.h"

#include "headrace/devices/base/simd.h"
#include "headrace/pipeline/operations/machinery/field_checks.h"
#include "headrace/pipeline/operations/machinery/pixel_pass.h"
#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace {
namespace {

HEADRACE_SIMD void change_tone(const PixelTone& tone, const float* __restrict from, std::int64_t count,
                               float* __restrict to) {
  const float shift = tone.shift, gain = tone.gain;
  for (std::int64_t i = 0; i < count; ++i) to[i] = (from[i] + shift) * gain;
}

class BrightnessContrastStep final : public Step {
 public:
  BrightnessContrastStep(const BrightnessContrast& options, std::uint16_t number)
      : options_(options), number_(number) {}

  FieldView run(const FieldView& in, const StepContext& context, StepOutput& output) const override {
    Philox random = context.random(number_);
    const std::span<std::byte> out = output.take(in.bytes.size());
    change_tone(draw_tone(options_, random), reinterpret_cast<const float*>(in.bytes.data()),
                static_cast<std::int64_t>(in.bytes.size() / sizeof(float)), reinterpret_cast<float*>(out.data()));
    return {.bytes = out, .shape = in.shape};
  }

 private:
  BrightnessContrast options_;
  std::uint16_t number_;
};

class BrightnessContrastDefinition final : public DataOperation<BrightnessContrast> {
 public:
  using DataOperation::DataOperation;

  bool is_random() const noexcept override { return true; }

  Field apply(const Field& before) const override {
    const FieldChecks checks(*this, before);
    checks.want_decoded();
    if (before.dtype != DType::kF32) checks.refuse("float32 is needed", "normalize() or cast() it first");
    checks.want_finite({options_.brightness, options_.contrast});
    if (options_.brightness < 0 || options_.contrast < 0) checks.refuse("an amount is negative");
    return before;
  }

  bool join(PixelPass& pass, const OperationPlace& place) const override {
    if (!pass.abilities.tones || pass.tone) return false;
    pass.tone = {.options = options_, .number = place.number};
    return true;
  }

  bool compile(StepList& steps, const OperationPlace& place) const override {
    steps.add(std::make_unique<BrightnessContrastStep>(options_, place.number), describe());
    return true;
  }
};

}  // namespace

OperationPtr define(BrightnessContrast options) { return std::make_shared<BrightnessContrastDefinition>(options); }

Operations brightness_contrast(BrightnessContrast options) { return Operation{options}; }

PixelTone draw_tone(const BrightnessContrast& options, Philox& random) {
  const float shift = (2 * random.uniform() - 1) * options.brightness;
  const float gain = 1 + (2 * random.uniform() - 1) * options.contrast;
  return {.shift = shift, .gain = gain};
}

PixelTone PlannedTone::draw(Philox& random) const { return draw_tone(options, random); }

}  // namespace headrace
