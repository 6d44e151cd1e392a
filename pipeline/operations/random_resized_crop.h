// A window of an image, drawn for its record, resized to a square.
#pragma once

#include "headrace/devices/base/rng.h"
#include "headrace/pipeline/decoders/image_size.h"
#include "headrace/pipeline/operation.h"

namespace headrace {

// Draws area (uniform) and aspect ratio (log-uniform) up to ten times until the window fits, then a place for
// it; the largest centred window of allowed ratio where none fitted: torchvision's rule. Its arithmetic is
// exact IEEE operations only, so that every machine draws the same window.
ImageWindow draw_window(const RandomResizedCrop& options, const ImageSize& image, Philox& random);

}  // namespace headrace
