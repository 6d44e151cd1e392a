// Data preparation of recipes.
#pragma once

#include <cstdint>
#include <string>

#include "headrace/tools/recipes/recipe.h"

namespace headrace::tools {

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

}  // namespace headrace::tools
