// Matches recipes to data.
#pragma once

#include <string>

#include "headrace/pipeline/source.h"
#include "headrace/tools/recipes/recipes.h"

namespace headrace::tools {

constexpr std::uint64_t kClasses = 10;  // at most, in the data of recipes for images of one size

// Returns the recipe for the images of RecipeOptions::train if the user names none. One for images of one size is
// chosen only if all images looked at have it and the data have a test split. Throws ConfigError, with the
// recipes' requirements, if none fits.
const NamedRecipe& choose_recipe(const RecipeOptions& options);

// Throws ConfigError, naming the recipes that fit, if the recipe's net does not take the train split's images, or
// they have too many classes. Checks only a few encoded images; the run finds one of another size than the rest.
void require_fit(const std::string& recipe, const SourcePtr& source);

}  // namespace headrace::tools
