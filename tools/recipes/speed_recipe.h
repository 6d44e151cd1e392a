// The common part of the recipes `cifar10-fast` and `cifar10-fast-b`: CIFAR-10 in some 200 steps, after whitening;
// nothing is held out.
#pragma once

#include <cstdint>
#include <string>

#include "headrace/pipeline/operations.h"
#include "headrace/tools/recipes/recipe.h"
#include "headrace/train/nets.h"
#include "headrace/train/optimizers.h"

namespace headrace::tools {

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
