#include "headrace/pipeline/operations/kernels/standardization.h"
#include "headrace/pipeline/operations/machinery/field_checks.h"
#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace {
namespace {

class StandardizationStep final : public Step {
 public:
  explicit StandardizationStep(DType from) : from_(from) {}

  FieldView run(const FieldView& in, const StepContext& /*context*/, StepOutput& output) const override {
    const auto count = static_cast<std::int64_t>(in.bytes.size() / size_of(from_));
    const std::span<std::byte> out = output.take(static_cast<std::size_t>(count) * sizeof(float));
    auto* const to = reinterpret_cast<float*>(out.data());
    if (from_ == DType::kU8) {
      standardize(reinterpret_cast<const std::uint8_t*>(in.bytes.data()), count, to);
    } else {
      standardize(reinterpret_cast<const float*>(in.bytes.data()), count, to);
    }
    return {.bytes = out, .shape = in.shape};
  }

 private:
  DType from_;
};

class PerImageStandardizationDefinition final : public DataOperation<PerImageStandardization> {
 public:
  using DataOperation::DataOperation;

  Field apply(const Field& before) const override {
    const FieldChecks checks(*this, before);
    checks.want_decoded();
    checks.want_type({DType::kU8, DType::kF32});
    Field after = before;
    after.dtype = DType::kF32;
    return after;
  }

  void compile(StepList& steps, const OperationPlace& place) const override {
    steps.add(std::make_unique<StandardizationStep>(place.before.dtype), describe());
  }
};

}  // namespace

OperationPtr define(PerImageStandardization options) {
  return std::make_shared<PerImageStandardizationDefinition>(options);
}

Operations per_image_standardization() { return Operation{PerImageStandardization{}}; }

}  // namespace headrace
