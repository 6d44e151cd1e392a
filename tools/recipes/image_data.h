// Labelled images of any size and number of classes: their splits and classes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/tools/recipes/recipe.h"

namespace headrace::tools {

// The share of the train split that validates if the data have no test split.
constexpr double kValidationShare = 0.1;

struct ImageData {
  SourcePtr source = {};  // of the train split
  std::uint64_t classes = 0;
  // As the source holds them. Without a test split in the data, `test` is `validation`.
  Dataset train, validation, test;
  std::vector<std::string> notes = {};  // how the data were divided, for people
};

// Returns the number of classes that the source states, or else one more than its largest label, for which all
// labels are read. Throws ConfigError if labels are no class numbers.
std::uint64_t class_count(const Source& source);

// Opens the data and divides them. Throws ConfigError if they cannot be divided.
ImageData image_data(const std::string& recipe, const RecipeOptions& options);

// Returns whether the data have a test split with labels.
bool has_test_split(const RecipeOptions& options);

// Returns the larger side of some of the images.
std::int64_t largest_side(const SourcePtr& source);

}  // namespace headrace::tools
