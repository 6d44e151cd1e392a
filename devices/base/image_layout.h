// How the pixels of images lie in memory.
#pragma once

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

// (H, W, C) or (C, H, W); of batches (N, H, W, C) or (N, C, H, W).
enum class ImageLayout { kChannelsLast, kChannelsFirst };

}  // namespace headrace
