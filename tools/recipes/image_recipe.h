// The common part of the recipes `images-small` and `images-resnet18`, for labelled images of any size: random
// resized crops and mirror images in training, resized and cut from the middle in an evaluation.
#pragma once

#include <cstdint>
#include <string>

#include "headrace/tools/recipes/recipe.h"
#include "headrace/train/nets.h"

namespace headrace::tools {

struct ImageRecipe {
  std::string name;
  Node (*net)(Graph& graph, const ImageNetOptions& options) = nullptr;
  bool pretrained = false;  // takes RecipeOptions::pretrained
  int image_size = 224;     // of the net's input, unless the images are smaller
  std::int64_t global_batch = 64;
  int epochs = 1, pretrained_epochs = 1;
  float min_area = 0.08F;               // of a random crop
  float rate = 0, pretrained_rate = 0;  // peak, for `rate_batch` examples in a step
  std::int64_t rate_batch = 0;          // 0: the rate is for any batch
  Optimizer (*optimizer)(const Schedule& rate) = nullptr;
};

// Each is defined in its own file.
ImageRecipe images_small_settings();
ImageRecipe images_resnet18_settings();

// Throws ConfigError if the options or the data are not for the recipe.
Recipe make_image_recipe(const ImageRecipe& recipe, const RecipeOptions& options);

}  // namespace headrace::tools
