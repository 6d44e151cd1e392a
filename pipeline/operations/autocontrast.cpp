#include <fmt/format.h>

#include "headrace/pipeline/operations/machinery/image_operation.h"

namespace headrace {
namespace {

class AutocontrastDefinition final : public ImageOperation<Autocontrast> {
 public:
  using ImageOperation::ImageOperation;

  void change(const LevelWork& image, Philox& /*random*/, Scratch& /*scratch*/) const override {
    stretch_levels(image);
  }
};

}  // namespace

OperationPtr define(Autocontrast options) { return std::make_shared<AutocontrastDefinition>(options); }

Operations autocontrast(float probability) { return Operation{Autocontrast{.probability = probability}}; }

}  // namespace headrace
