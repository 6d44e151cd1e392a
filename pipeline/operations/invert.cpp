#include <fmt/format.h>

#include "headrace/pipeline/operations/machinery/image_operation.h"

namespace headrace {
namespace {

class InvertDefinition final : public ImageOperation<Invert> {
 public:
  using ImageOperation::ImageOperation;

  void change(const LevelWork& image, Philox& /*random*/, Scratch& /*scratch*/) const override {
    invert_levels(image);
  }
};

}  // namespace

OperationPtr define(Invert options) { return std::make_shared<InvertDefinition>(options); }

Operations invert(float probability) { return Operation{Invert{.probability = probability}}; }

}  // namespace headrace
