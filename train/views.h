// Several views of each image when a net is evaluated: test-time augmentation.
#pragma once

#include <vector>

#include "headrace/devices/kernels.h"

namespace headrace {

// What the net makes of the image so moved counts with this weight: of each of its results.
struct View {
  float weight = 1;
  ImageShift shift = {};
};

// The image and its mirror image, half and half.
std::vector<View> mirrored_views();
// Half of that, and a quarter each of the image moved by so many pixels down and right, and up and left, each with
// its mirror image: six views.
std::vector<View> mirrored_and_shifted_views(int pixels = 1);

}  // namespace headrace
