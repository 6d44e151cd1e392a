// `images-resnet18`: ResNet-18 in its ImageNet form, from the start or from pretrained weights.
#include "headrace/tools/recipes/image_recipe.h"
#include "headrace/tools/recipes/recipes.h"

namespace headrace::tools {

ImageRecipe images_resnet18_settings() {
  return {.name = "images-resnet18",
          .net = resnet18_imagenet,
          .pretrained = true,
          .image_size = 224,
          .global_batch = 128,
          .epochs = 60,
          .pretrained_epochs = 10,
          .rate = 0.1F,
          .pretrained_rate = 0.02F,
          .rate_batch = 256,
          .optimizer = [](const Schedule& rate) {
            return sgd(rate, {.momentum = 0.9F, .weight_decay = 1e-4F, .nesterov = true});
          }};
}

Recipe images_resnet18_recipe(const RecipeOptions& options) {
  return make_image_recipe(images_resnet18_settings(), options);
}

}  // namespace headrace::tools
