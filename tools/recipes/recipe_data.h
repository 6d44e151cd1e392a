// The data of recipes: splits and batches, folders and archives of images.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/tools/recipes/recipe.h"

namespace headrace::tools {

// Data preparation of recipes.

constexpr std::int64_t kEvaluationBatch = 500;
constexpr std::uint64_t kClasses = 10;  // at most, in the data of recipes for images of one size

struct Splits {
  SourcePtr train = {};
  SourcePtr test = {};
};

// `label_count` as in SourceOptions. Throws ConfigError if there are no data.
SourcePtr open_split(const RecipeOptions& options, Split split, std::uint64_t label_count);

// Returns RecipeOptions::train, or opens it, and the test split. Throws as open_split() does, and ConfigError for
// options that recipes for images of one size cannot honour.
Splits open_splits(const std::string& recipe, const RecipeOptions& options);

// If the source holds encoded images, they are decoded and kept in the cache of RecipeOptions::open_cache. An
// encoded image that is not `side` pixels high and wide is then a bad record.
struct RecipeImages {
  Dataset dataset;
  bool cached = false;
};
RecipeImages images_of(const SourcePtr& source, std::int64_t side, const RecipeOptions& options);

// Returns RecipeOptions::global_batch, or `usual` if it is not set.
std::int64_t batch_size(const RecipeOptions& options, std::int64_t usual);
// Throws ConfigError if a batch is never full and partial batches are dropped.
Dataset batched(const Dataset& data, const BatchOptions& batch, const RecipeOptions& options);

// Returns how long to train, and how the data are read.
FitOptions fit_of(const RecipeOptions& options, int usual_epochs);

// Returns the options of a loader that reads data once on the host, to inspect them.
LoaderOptions host_input(const RecipeOptions& options);

// Labelled images of any size and number of classes: their splits and classes.

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
