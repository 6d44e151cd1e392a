// The random draws of brightness_contrast(): applied by the host as a step, by a device as part of its pass.
#pragma once

#include "headrace/devices/base/rng.h"
#include "headrace/devices/input_kernels.h"
#include "headrace/pipeline/operations.h"

namespace headrace {

// Draws the shift, then the gain: two numbers.
PixelTone draw_tone(const BrightnessContrast& options, Philox& random);

}  // namespace headrace
