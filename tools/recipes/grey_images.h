// The data of the recipes on small grey images.
#pragma once

#include <cstdint>
#include <string>

#include "headrace/tools/recipes/recipe.h"

namespace headrace::tools {

struct GreyImages {
  Dataset train, validation, test;
};

// Images as they are stored, u8: the net scales them to [0, 1]. The last `held_out` records of the train split
// validate; ConfigError where there are no others.
GreyImages grey_images(const std::string& recipe, const RecipeOptions& options, std::uint64_t held_out,
                       std::int64_t batch);

}  // namespace headrace::tools
