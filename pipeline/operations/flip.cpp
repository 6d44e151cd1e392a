#include <fmt/format.h>

#include "headrace/pipeline/operations/field_checks.h"
#include "headrace/pipeline/operations/pixel_pass.h"

namespace headrace {
namespace {

class FlipDefinition final : public OperationDefinition {
 public:
  explicit FlipDefinition(const Flip& options) : options_(options) {}

  std::string describe() const override {
    return fmt::format("flip({}{})", options_.probability,
                       options_.draw == FlipDraw::kAlternating ? ", alternating" : "");
  }

  bool is_random() const noexcept override { return true; }

  Field apply(const Field& before) const override {
    const FieldChecks checks(*this, before);
    checks.want_channels_last();
    checks.want_type({DType::kU8, DType::kF32});
    checks.want_probability(options_.probability);
    return before;
  }

  bool join(PixelPass& pass, const OperationPlace& place) const override {
    pass.window.add(PlannedFlip{.options = options_, .number = place.number});
    return true;
  }

 private:
  Flip options_;
};

}  // namespace

OperationPtr define(Flip options) { return std::make_shared<FlipDefinition>(options); }

Operations flip(float probability) { return Operation{Flip{.probability = probability}}; }

Operations alternating_flip() { return Operation{Flip{.draw = FlipDraw::kAlternating}}; }

bool PlannedFlip::draw(const StepContext& context) const {
  const bool alternating = options.draw == FlipDraw::kAlternating;
  StepContext keyed = context;
  if (alternating) keyed.pass = 0;
  const bool mirrored = keyed.random(number).uniform() < options.probability;
  return mirrored ^ (alternating && context.pass % 2 == 1);
}

}  // namespace headrace
