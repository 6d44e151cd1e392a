#include <fmt/format.h>

#include "headrace/pipeline/operations/machinery/image_operation.h"

namespace headrace {
namespace {

class AutocontrastDefinition final : public ImageOperation<Autocontrast> {
 public:
  using ImageOperation::ImageOperation;

  const char* name() const noexcept override { return "autocontrast"; }

  std::string describe() const override { return fmt::format("autocontrast(p={})", options_.probability); }

  void change(const LevelWork& image, Philox& /*random*/, Scratch& /*scratch*/) const override {
    stretch_levels(image);
  }

 private:
  void show(Autocontrast& options, OptionVisitor& visit) const override {
    visit("probability", options.probability);
  }
};

}  // namespace

OperationPtr define(Autocontrast options) { return std::make_shared<AutocontrastDefinition>(options); }

Operations autocontrast(float probability) { return Operation{Autocontrast{.probability = probability}}; }

}  // namespace headrace
