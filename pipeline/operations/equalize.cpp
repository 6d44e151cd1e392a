#include <fmt/format.h>

#include "headrace/pipeline/operations/machinery/image_operation.h"

namespace headrace {
namespace {

class EqualizeDefinition final : public ImageOperation<Equalize> {
 public:
  using ImageOperation::ImageOperation;

  void change(const LevelWork& image, Philox& /*random*/, Scratch& /*scratch*/) const override {
    equalize_levels(image);
  }
};

}  // namespace

OperationPtr define(Equalize options) { return std::make_shared<EqualizeDefinition>(options); }

Operations equalize(float probability) { return Operation{Equalize{.probability = probability}}; }

}  // namespace headrace
