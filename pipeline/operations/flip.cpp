#include "headrace/pipeline/operations/machinery/field_checks.h"
#include "headrace/pipeline/operations/machinery/moving_operation.h"
#include "headrace/pipeline/operations/machinery/pixel_pass.h"

namespace headrace {
namespace {

class RandomMirroring final : public WindowChange {
 public:
  RandomMirroring(const Flip& options, std::uint16_t number) : options_(options), number_(number) {}

  void change(CropWindow& window, const StepContext& context) const override {
    const bool alternating = options_.alternating;
    const bool mirrored = context.random(number_, alternating ? 0 : context.pass).uniform() < options_.probability;
    window.mirrored ^= mirrored ^ (alternating && context.pass % 2 == 1);
  }

 private:
  Flip options_;
  std::uint16_t number_;
};

class FlipDefinition final : public MovingOperation<Flip> {
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

  bool join(PixelPass& pass, const OperationPlace& place) const override {
    pass.window.add(std::make_shared<RandomMirroring>(options_, place.number));
    return true;
  }

 private:
  std::shared_ptr<const PixelMover> mover(std::uint16_t number) const override {
    return window_mover(std::make_shared<RandomMirroring>(options_, number));
  }
};

}  // namespace

OperationPtr define(Flip options) { return std::make_shared<FlipDefinition>(options); }

Operations flip(float probability) { return Operation{Flip{.probability = probability}}; }

Operations alternating_flip() { return Operation{Flip{.alternating = true}}; }

}  // namespace headrace
