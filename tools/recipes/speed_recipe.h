// The common part of the recipes `cifar10-fast` and `cifar10-fast-b`: CIFAR-10 in some 200 steps, after whitening;
// nothing is held out.
#pragma once

#include <cstdint>
#include <string>

#include "headrace/pipeline/operations.h"
#include "headrace/tools/recipes/recipe.h"
#include "headrace/tools/recipes/speed_optimizer.h"
#include "headrace/train/nets.h"

namespace headrace::tools {

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
