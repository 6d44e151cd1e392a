#include <fmt/format.h>

#include "headrace/pipeline/operations/machinery/field_checks.h"
#include "headrace/pipeline/operations/machinery/pixel_pass.h"

namespace headrace {
namespace {

class ToLayoutDefinition final : public DataOperation<ToLayout> {
 public:
  using DataOperation::DataOperation;

  const char* name() const noexcept override { return "to_layout"; }

  std::string describe() const override {
    return fmt::format("to_layout({})", options_.to == ImageLayout::kChannelsFirst ? "CHW" : "HWC");
  }

  Field apply(const Field& before) const override {
    const FieldChecks checks(*this, before);
    checks.want_decoded();
    checks.want_type({DType::kU8, DType::kF32});
    if (before.shape.rank() != 3) checks.refuse("an image of three axes is needed");
    const Shape& from = before.shape;
    Field after = before;
    if (layout_of(from) == options_.to) return after;
    after.shape = options_.to == ImageLayout::kChannelsFirst ? Shape{from[2], from[0], from[1]}
                                                             : Shape{from[1], from[2], from[0]};
    return after;
  }

  bool join(PixelPass& pass, const OperationPlace& /*place*/) const override {
    pass.to_layout = options_.to;
    return true;
  }

 private:
  void show(ToLayout& options, OptionVisitor& visit) const override {
    visit("to", options.to, {"channels_last", "channels_first"});
  }
};

}  // namespace

OperationPtr define(ToLayout options) { return std::make_shared<ToLayoutDefinition>(options); }

Operations to_layout(ImageLayout layout) { return Operation{ToLayout{.to = layout}}; }

}  // namespace headrace
