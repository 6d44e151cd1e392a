#include "headrace/pipeline/operations/machinery/field_checks.h"
#include "headrace/pipeline/operations/machinery/pixel_pass.h"

namespace headrace {
namespace {

class FlattenDefinition final : public DataOperation<FlattenSample> {
 public:
  using DataOperation::DataOperation;

  Field apply(const Field& before) const override {
    const FieldChecks checks(*this, before);
    checks.want_decoded();
    if (before.shape.is_dynamic()) {
      checks.refuse("its size differs from record to record", "crop or resize it first");
    }
    Field after = before;
    after.shape = Shape{before.shape.elements()};
    after.layout.reset();
    return after;
  }

  bool join(PixelPass& pass, const OperationPlace& /*place*/) const override {
    pass.flat = true;
    return true;
  }
};

}  // namespace

OperationPtr define(FlattenSample options) { return std::make_shared<FlattenDefinition>(options); }

Operations flatten() { return Operation{FlattenSample{}}; }

}  // namespace headrace
