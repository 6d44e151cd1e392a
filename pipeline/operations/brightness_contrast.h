// What brightness_contrast() draws for a record: the host does it as a step, a device as part of its pass.
#pragma once

#include "headrace/devices/base/rng.h"
#include "headrace/devices/input_kernels.h"
#include "headrace/pipeline/operation.h"

namespace headrace {

// The shift, then the gain: two numbers.
PixelTone draw_tone(const BrightnessContrast& options, Philox& random);

}  // namespace headrace
