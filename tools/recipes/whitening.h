// Filters that decorrelate small patches of images: the weights of a first convolution, computed from data.
#pragma once

#include <memory>
#include <vector>

#include "headrace/devices/base/shape.h"
#include "headrace/devices/device.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/loader.h"

namespace headrace::tools {

// Images in host memory.
struct ImageBlock {
  Shape shape;  // (images, height, width, channels)
  std::vector<float> values;
};

// Reads the field "image", f32 of shape (height, width, channels), in one pass, in the order of the data.
ImageBlock read_images(const Dataset& batched, const LoaderOptions& input = {});

struct WhiteningOptions {
  int kernel = 2;         // side of a patch
  float epsilon = 5e-4F;  // added to the variances
};

// Computes the filters in two parts, for callers who time training: the constructor brings the images to the
// device, filters() computes there.
class Whitening {
 public:
  // Copies through pinned memory if the device has separate memory; waits. Throws ConfigError for data that are
  // not images or have no patches. REQUIRES: the device has kernels and outlives this.
  Whitening(const ImageBlock& images, Device& device, const WhiteningOptions& options = {});
  ~Whitening();
  Whitening(Whitening&&) noexcept;
  Whitening& operator=(Whitening&&) noexcept;

  // Returns the filters of whitening_filters(). Waits for the device once.
  std::vector<float> filters();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Returns the eigenvectors of the patches' second moments, each divided by the root of its eigenvalue, the
// smallest first, then their opposites: (2 kernel^2 channels, kernel, kernel, channels), as a convolution's
// weights. The largest component of the first half's filters is positive. The moments are summed on the device,
// with the same result for any number of replicas. REQUIRES: the device has kernels.
std::vector<float> whitening_filters(const ImageBlock& images, Device& device,
                                     const WhiteningOptions& options = {});

}  // namespace headrace::tools
