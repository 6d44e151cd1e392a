// Which recipe fits which data.
#pragma once

#include <string>

#include "headrace/pipeline/source.h"
#include "headrace/tools/recipes/recipes.h"

namespace headrace::tools {

constexpr std::uint64_t kClasses = 10;  // of every recipe's data

// The recipe for these images where the user names none. ConfigError saying what recipes want where none fits.
const NamedRecipe& choose_recipe(const SourcePtr& source);

// ConfigError where the images of the train split are not what the recipe's net takes, or are of too many classes.
// It names the recipes that fit. Of encoded images a few are looked at; one of another size than the rest is for
// the run to find.
void require_fit(const std::string& recipe, const SourcePtr& source);

}  // namespace headrace::tools
