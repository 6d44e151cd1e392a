// Brightness, contrast, saturation and hue changed by what was drawn for a record.
#pragma once

#include <cstdint>

#include "headrace/pipeline/operation.h"
#include "headrace/pipeline/operations/step.h"

namespace headrace {

struct ColorJitterStep {
  ColorJitter options;
  std::uint16_t number = 0;

  FieldView run(const FieldView& in, const StepContext& context, StepOutput& output) const;
};

}  // namespace headrace
