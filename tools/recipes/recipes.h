// The recipes by name, and the data that each trains on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/tools/recipes/recipe.h"

namespace headrace::tools {

// Each is defined in its own file.
Recipe mnist_mlp_recipe(const RecipeOptions& options);
Recipe fashion_mnist_recipe(const RecipeOptions& options);
Recipe cifar10_cnn_recipe(const RecipeOptions& options);
Recipe cifar10_fast_recipe(const RecipeOptions& options);
Recipe cifar10_fast_b_recipe(const RecipeOptions& options);
Recipe cifar10_resnet18_recipe(const RecipeOptions& options);
Recipe images_small_recipe(const RecipeOptions& options);
Recipe images_resnet18_recipe(const RecipeOptions& options);

// The images that a recipe takes.
struct WantedImages {
  std::int64_t side = 0, channels = 0;  // 0: of any size, with any number of classes; grey or colour
  bool encoded = false;                 // also encoded images
};

struct NamedRecipe {
  const char* name;
  Recipe (*make)(const RecipeOptions&);
  const WantedImages* images;
  bool automatic = false;  // kAutoRecipe's choice for such images
};
std::vector<std::string> recipe_names();

// In place of a name: the recipe that fits the data. Of those for any images, images-resnet18 on GPUs for at least
// kManyImages or with pretrained weights, else images-small. ConfigError, with the recipes' requirements, if none
// fits.
inline constexpr const char* kAutoRecipe = "auto";
inline constexpr std::uint64_t kManyImages = 10'000;

// Returns the recipe for the images of RecipeOptions::train if the user names none. One for images of one size is
// chosen only if all images looked at have it and the data have a test split. Throws ConfigError, with the
// recipes' requirements, if none fits.
const NamedRecipe& choose_recipe(const RecipeOptions& options);

// Throws ConfigError, listing the recipes, for an unknown name; throws as the source does for data that cannot be
// opened or do not fit the recipe.
Recipe make_recipe(const std::string& name, const RecipeOptions& options);

}  // namespace headrace::tools
