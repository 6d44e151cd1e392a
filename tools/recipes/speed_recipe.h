// Filters that decorrelate small patches of images: the weights of a first convolution, computed from data.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "headrace/devices/base/shape.h"
#include "headrace/devices/device.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/loader.h"
#include "headrace/pipeline/operations.h"
#include "headrace/tools/recipes/recipe.h"
#include "headrace/train/nets.h"
#include "headrace/train/optimizers.h"

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

// The common part of the recipes `cifar10-fast` and `cifar10-fast-b`: CIFAR-10 in some 200 steps, after whitening;
// nothing is held out.

struct SpeedOptimizerOptions {
  std::int64_t examples_per_step = 1;
  std::uint64_t steps = 1;            // steps over which the rates fall to 0
  std::uint64_t whitening_steps = 1;  // for the whitening's bias, which is fixed afterwards
  float bias_rate = 0, head_rate = 0, conv_rate = 0;
  float momentum = 0;           // of parameters not under Muon
  float decay_per_example = 0;  // weight decay per step
  bool convs_decay = false;     // also decays parameters under Muon, times their rate
  // Except its decay and rate, and the steps over which its norm interval grows: it normalizes.
  MuonOptions muon = {.momentum = 0.6F, .iterations = 3};
};

// Returns Muon for the convolutions, and SGD with Nesterov's momentum for the whitening's bias, the norms' biases
// and the head. REQUIRES: losses are summed over the batch, Reduction::kSum.
Optimizer speed_optimizer(const SpeedOptimizerOptions& options);

struct SpeedRecipe {
  std::string name;
  std::int64_t global_batch = 0;
  int epochs = 0;
  std::uint64_t epoch_parts = 1, parts_of_pass = 1;  // an epoch is `epoch_parts` of a pass's `parts_of_pass` parts
  double whitening_passes = 0;                       // passes in which the whitening's bias is trained
  std::uint64_t whitening_images = 0;
  float label_smoothing = 0;
  SpeedNetOptions net = {};
  Operations augmentation;  // ends with normalised images
  SpeedOptimizerOptions optimizer =
      {};  // except its steps and their examples, which follow from the training's length
};

// Each is defined in its own file.
SpeedRecipe cifar10_fast_settings();
SpeedRecipe cifar10_fast_b_settings();

// Rates are for sums over a batch: another batch size, or several batches in a step, keep the effect of an image.
Recipe make_speed_recipe(const SpeedRecipe& recipe, const RecipeOptions& options);

// Returns reflect-padding by 2 and a crop, mirrored in every second epoch.
Operations crop_and_flip();
Operations normalize_cifar();

}  // namespace headrace::tools
