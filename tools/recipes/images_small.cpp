// `images-small`: a small net for photographs that a laptop trains in minutes.
#include "headrace/tools/recipes/image_recipe.h"
#include "headrace/tools/recipes/recipes.h"

namespace headrace::tools {

ImageRecipe images_small_settings() {
  return {.name = "images-small",
          .net = small_image_cnn,
          .image_size = 96,
          .global_batch = 32,
          .epochs = 20,
          .min_area = 0.35F,
          .rate = 2e-3F,
          .optimizer = [](const Schedule& rate) { return adamw(rate); }};
}

Recipe images_small_recipe(const RecipeOptions& options) {
  return make_image_recipe(images_small_settings(), options);
}

}  // namespace headrace::tools
