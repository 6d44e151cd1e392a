#include <fmt/format.h>

#include <cmath>

#include "headrace/pipeline/operations/machinery/image_operation.h"

namespace headrace {
namespace {

class SolarizeDefinition final : public ImageOperation<Solarize> {
 public:
  using ImageOperation::ImageOperation;

  void change(const LevelWork& image, Philox& /*random*/, Scratch& /*scratch*/) const override {
    solarize_levels(image, static_cast<int>(std::ceil(options_.threshold)));
  }

 private:
  Field changed(const Field& before, const FieldChecks& checks) const override {
    if (!(options_.threshold >= 0 && options_.threshold <= 256)) {
      checks.refuse("the threshold is not within 0 and 256");
    }
    return before;
  }
};

}  // namespace

OperationPtr define(Solarize options) { return std::make_shared<SolarizeDefinition>(options); }

Operations solarize(float threshold, float probability) {
  return Operation{Solarize{.threshold = threshold, .probability = probability}};
}

}  // namespace headrace
