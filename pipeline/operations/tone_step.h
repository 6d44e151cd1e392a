// Brightness and contrast of a float image changed by what was drawn for its record.
#pragma once

#include <cstdint>

#include "headrace/devices/input_kernels.h"
#include "headrace/pipeline/operation.h"
#include "headrace/pipeline/operations/step.h"

namespace headrace {

// The shift, then the gain: two numbers.
PixelTone draw_tone(const BrightnessContrast& options, Philox& random);

struct ToneStep {
  BrightnessContrast options;
  std::uint16_t number = 0;

  FieldView run(const FieldView& in, const StepContext& context, StepOutput& output) const;
};

}  // namespace headrace
