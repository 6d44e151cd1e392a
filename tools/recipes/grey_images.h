// The data of the recipes on small grey images.
#pragma once

#include <cstdint>
#include <string>

#include "headrace/tools/recipes/recipe.h"

namespace headrace::tools {

struct GreyImages {
  Dataset train, validation, test;
};

// Returns the stored images, u8: the net scales them to [0, 1]. The last `held_out` records of the train split are
// for validation. Throws ConfigError if there are no others.
GreyImages grey_images(const std::string& recipe, const RecipeOptions& options, std::uint64_t held_out,
                       std::int64_t batch);

}  // namespace headrace::tools
