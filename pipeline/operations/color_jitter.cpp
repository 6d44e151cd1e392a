#include <cstring>

#include "headrace/pipeline/operations/kernels/color_kernels.h"
#include "headrace/pipeline/operations/machinery/field_checks.h"
#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace {
namespace {

class ColorJitterStep final : public Step {
 public:
  ColorJitterStep(const ColorJitter& options, std::uint16_t number) : options_(options), number_(number) {}

  FieldView run(const FieldView& in, const StepContext& context, StepOutput& output) const override {
    Philox random = context.random(number_);
    const ColorPlan plan = draw_colors(options_, random);
    const std::span<std::byte> out = output.take(in.bytes.size());
    // Drawn last: a probability leaves the other draws as they are.
    if (random.uniform() < options_.probability) {
      change_colors(plan, reinterpret_cast<const std::uint8_t*>(in.bytes.data()), in.shape[0] * in.shape[1],
                    reinterpret_cast<std::uint8_t*>(out.data()));
    } else {
      std::memcpy(out.data(), in.bytes.data(), out.size());
    }
    return {.bytes = out, .shape = in.shape};
  }

 private:
  ColorJitter options_;
  std::uint16_t number_;
};

class ColorJitterDefinition final : public DataOperation<ColorJitter> {
 public:
  using DataOperation::DataOperation;

  bool is_random() const noexcept override { return true; }

  Field apply(const Field& before) const override {
    const FieldChecks checks(*this, before);
    checks.want_channels_last();
    checks.want_type({DType::kU8});
    if (before.shape[2] != 3) checks.refuse("an image of three channels, RGB, is needed");
    checks.want_probability(options_.probability);
    checks.want_finite({options_.brightness, options_.contrast, options_.saturation});
    if (options_.brightness < 0 || options_.contrast < 0 || options_.saturation < 0) {
      checks.refuse("an amount is negative");
    }
    if (!(options_.hue >= 0 && options_.hue <= 0.5F)) checks.refuse("the hue is not within 0 and 0.5");
    return before;
  }

  bool compile(StepList& steps, const OperationPlace& place) const override {
    steps.add(std::make_unique<ColorJitterStep>(options_, place.number), describe());
    return true;
  }
};

}  // namespace

OperationPtr define(ColorJitter options) { return std::make_shared<ColorJitterDefinition>(options); }

Operations color_jitter(ColorJitter options) { return Operation{options}; }

}  // namespace headrace
