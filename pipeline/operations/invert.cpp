#include <fmt/format.h>

#include "headrace/pipeline/operations/machinery/image_operation.h"

namespace headrace {
namespace {

class InvertDefinition final : public ImageOperation<Invert> {
 public:
  using ImageOperation::ImageOperation;

  const char* name() const noexcept override { return "invert"; }

  std::string describe() const override { return fmt::format("invert(p={})", options_.probability); }

  void change(const LevelWork& image, Philox& /*random*/, Scratch& /*scratch*/) const override {
    invert_levels(image);
  }

 private:
  void show(Invert& options, OptionVisitor& visit) const override { visit("probability", options.probability); }
};

}  // namespace

OperationPtr define(Invert options) { return std::make_shared<InvertDefinition>(options); }

Operations invert(float probability) { return Operation{Invert{.probability = probability}}; }

}  // namespace headrace
