// Draws a window of an image for a record; it is then resized to a square.
#pragma once

#include "headrace/devices/base/rng.h"
#include "headrace/pipeline/decoders/image_size.h"
#include "headrace/pipeline/operations.h"

namespace headrace {

// Draws area (uniform) and aspect ratio (log-uniform) up to ten times until the window fits, then its position; if
// none fits, uses the largest centred window of allowed ratio: torchvision's rule. Uses only exact IEEE
// operations, so that every machine draws the same window.
ImageWindow draw_window(const RandomResizedCrop& options, const ImageSize& image, Philox& random);

}  // namespace headrace
