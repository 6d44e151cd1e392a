#include <fmt/format.h>

#include "headrace/pipeline/operations/machinery/field_checks.h"
#include "headrace/pipeline/operations/machinery/pixel_pass.h"

namespace headrace {
namespace {

class CastDefinition final : public DataOperation<Cast> {
 public:
  using DataOperation::DataOperation;

  Field apply(const Field& before) const override {
    const FieldChecks checks(*this, before);
    checks.want_decoded();
    checks.want_type({DType::kU8, DType::kF32});
    if (options_.to != DType::kU8 && options_.to != DType::kF32) {
      checks.refuse(fmt::format("{} is not offered, only uint8 and float32", to_string(options_.to)));
    }
    Field after = before;
    after.dtype = options_.to;
    return after;
  }

  bool join(PixelPass& pass, const OperationPlace& place) const override {
    const bool narrows = place.before.dtype == DType::kF32 && options_.to == DType::kU8;
    if (narrows && !pass.abilities.narrows) return false;
    const bool rounded = pass.to_type == DType::kU8 && (pass.scale || pass.from_type == DType::kF32);
    if (rounded && options_.to == DType::kF32) return false;
    pass.to_type = options_.to;
    return true;
  }
};

}  // namespace

OperationPtr define(Cast options) { return std::make_shared<CastDefinition>(options); }

Operations cast(DType to) { return Operation{Cast{.to = to}}; }

}  // namespace headrace
