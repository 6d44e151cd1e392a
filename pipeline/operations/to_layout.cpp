#include "headrace/pipeline/operations/machinery/field_checks.h"
#include "headrace/pipeline/operations/machinery/pixel_pass.h"

namespace headrace {
namespace {

class ToLayoutDefinition final : public DataOperation<ToLayout> {
 public:
  using DataOperation::DataOperation;

  Field apply(const Field& before) const override {
    const FieldChecks checks(*this, before);
    checks.want_decoded();
    checks.want_type({DType::kU8, DType::kF32});
    if (before.shape.rank() != 3) checks.refuse("an image of three axes is needed");
    checks.want_layout();
    const Shape& from = before.shape;
    Field after = before;
    after.layout = options_.layout;
    if (layout_of(before) == options_.layout) return after;
    after.shape = options_.layout == ImageLayout::kChannelsFirst ? Shape{from[2], from[0], from[1]}
                                                                 : Shape{from[1], from[2], from[0]};
    return after;
  }

  bool join(PixelPass& pass, const OperationPlace& /*place*/) const override {
    pass.to_layout = options_.layout;
    return true;
  }
};

class LayoutIsDefinition final : public DataOperation<LayoutIs> {
 public:
  using DataOperation::DataOperation;

  const std::string& field() const noexcept override { return options_.field; }

  Field apply(const Field& before) const override {
    const FieldChecks checks(*this, before);
    checks.want_decoded();
    if (before.shape.rank() != 3) checks.refuse("an image of three axes is needed");
    if (before.layout && *before.layout != options_.layout) {
      checks.refuse("its layout is known to be the other one", "to_layout() converts it");
    }
    Field after = before;
    after.layout = options_.layout;
    return after;
  }

  bool join(PixelPass& /*pass*/, const OperationPlace& /*place*/) const override { return true; }

  bool compile(StepList& /*steps*/, const OperationPlace& /*place*/) const override { return true; }
};

}  // namespace

OperationPtr define(ToLayout options) { return std::make_shared<ToLayoutDefinition>(options); }

OperationPtr define(LayoutIs options) { return std::make_shared<LayoutIsDefinition>(std::move(options)); }

Operations layout_is(ImageLayout layout, std::string field) {
  return Operation{LayoutIs{.layout = layout, .field = std::move(field)}};
}

Operations to_layout(ImageLayout layout) { return Operation{ToLayout{.layout = layout}}; }

}  // namespace headrace
