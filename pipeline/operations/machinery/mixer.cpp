#include "headrace/pipeline/operations/machinery/mixer.h"

#include <fmt/format.h>

#include "headrace/devices/base/failures.h"
#include "headrace/pipeline/operations/kernels/blend.h"

namespace headrace {
namespace {

constexpr float kMinAlpha = 1e-3F, kMaxAlpha = 1e3F;

}  // namespace

void want_mixable(const FieldChecks& checks, float alpha, float probability) {
  checks.want_decoded();
  checks.want_type({DType::kU8, DType::kF32});
  if (!(alpha >= kMinAlpha && alpha <= kMaxAlpha)) {
    checks.refuse(fmt::format("alpha {} is not within {} and {}", alpha, kMinAlpha, kMaxAlpha));
  }
  checks.want_probability(probability);
}

MixedFields::MixedFields(const Fields& fields)
    : image(find_field(fields, "image")),
      label(find_field(fields, kLabelField)),
      type(fields[image].dtype),
      shape(fields[image].shape),
      classes(fields[label].shape.elements()) {}

void MixedFields::blend_labels(const SampleRows& first, const SampleRows& second, float share) const {
  blend_floats(reinterpret_cast<float*>(first[label]), reinterpret_cast<float*>(second[label]), classes, share);
}

Mixer::Mixer(const PlannedOperation& planned, const Fields& fields)
    : number_(planned.number), pairs_(planned.operation.definition().create_mixer(fields)) {
  HEADRACE_CHECK(pairs_ != nullptr, describe(planned.operation) + " is no batch-level operation");
}

}  // namespace headrace
