#include <fmt/format.h>

#include "headrace/pipeline/operations/machinery/image_operation.h"

namespace headrace {
namespace {

class AdjustSharpnessDefinition final : public ImageOperation<AdjustSharpness> {
 public:
  using ImageOperation::ImageOperation;

  void change(const LevelWork& image, Philox& /*random*/, Scratch& /*scratch*/) const override {
    sharpen_levels(image, options_.factor);
  }

 private:
  Field changed(const Field& before, const FieldChecks& checks) const override {
    checks.want_finite({options_.factor});
    if (options_.factor < 0) checks.refuse("the factor is negative");
    return before;
  }
};

}  // namespace

OperationPtr define(AdjustSharpness options) { return std::make_shared<AdjustSharpnessDefinition>(options); }

Operations adjust_sharpness(float factor, float probability) {
  return Operation{AdjustSharpness{.factor = factor, .probability = probability}};
}

}  // namespace headrace
