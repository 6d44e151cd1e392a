// `cifar10-fast`: 200 steps of 2000 images. Its net is cifar10_speed_net() as it is.
#include "headrace/tools/recipes/recipes.h"
#include "headrace/tools/recipes/speed_recipe.h"

namespace headrace::tools {

SpeedRecipe cifar10_fast_settings() {
  return {.name = "cifar10-fast",
          .global_batch = 2000,
          .epochs = 8,
          .whitening_passes = 3,
          .whitening_images = 5000,
          .label_smoothing = 0.2F,
          .augmentation = crop_and_flip() | normalize_cifar(),
          .optimizer = {.bias_rate = 0.053F,
                        .head_rate = 0.67F,
                        .conv_rate = 0.24F,
                        .momentum = 0.85F,
                        .decay_per_example = 2e-6F}};
}

Recipe cifar10_fast_recipe(const RecipeOptions& options) {
  return make_speed_recipe(cifar10_fast_settings(), options);
}

// `cifar10-fast-b`, a later record's: 9 x 27 steps of 1536 images in 7.59 passes over the data, which is a
// fifteenth less work than cifar10-fast; images are also made brighter and darker, SiLU takes GELU's place, and
// norms are scaled ever more rarely.

SpeedRecipe cifar10_fast_b_settings() {
  return {.name = "cifar10-fast-b",
          .global_batch = 1536,
          .epochs = 9,
          .epoch_parts = 27,
          .parts_of_pass = 32,
          .whitening_passes = 0.19,
          .whitening_images = 960,
          .label_smoothing = 0.09F,
          .net = {.activation = Activation::kSilu, .norm_momentum = 0.5566F},
          .augmentation = crop_and_flip() | normalize_cifar() |
                          brightness_contrast({.brightness = 0.1399F, .contrast = 0.1308F}),
          .optimizer = {.bias_rate = 0.0573F,
                        .head_rate = 0.5415F,
                        .conv_rate = 0.205F,
                        .momentum = 0.825F,
                        .decay_per_example = 1.0418e-6F,
                        .convs_decay = true,
                        .muon = {.momentum = 0.655F,
                                 .a = 3.4576F,
                                 .b = -4.7391F,
                                 .c = 2.0843F,
                                 .iterations = 3,
                                 .norm_interval = {.first = 2, .growth = 15}}}};
}

Recipe cifar10_fast_b_recipe(const RecipeOptions& options) {
  return make_speed_recipe(cifar10_fast_b_settings(), options);
}

}  // namespace headrace::tools
