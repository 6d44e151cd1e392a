#include <fmt/format.h>

#include "headrace/pipeline/operations/machinery/image_operation.h"

namespace headrace {
namespace {

class PosterizeDefinition final : public ImageOperation<Posterize> {
 public:
  using ImageOperation::ImageOperation;

  void change(const LevelWork& image, Philox& /*random*/, Scratch& /*scratch*/) const override {
    posterize_levels(image, options_.bits);
  }

 private:
  Field changed(const Field& before, const FieldChecks& checks) const override {
    if (options_.bits < 0 || options_.bits > 8) checks.refuse("the bits are not within 0 and 8");
    return before;
  }
};

}  // namespace

OperationPtr define(Posterize options) { return std::make_shared<PosterizeDefinition>(options); }

Operations posterize(int bits, float probability) {
  return Operation{Posterize{.bits = bits, .probability = probability}};
}

}  // namespace headrace
