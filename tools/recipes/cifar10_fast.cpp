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

}  // namespace headrace::tools
