// What recipes do with their data.
#pragma once

#include <cstdint>
#include <string>

#include "headrace/tools/recipes/recipe.h"

namespace headrace::tools {

constexpr std::int64_t kEvaluationBatch = 500;

struct Splits {
  SourcePtr train = {};
  SourcePtr test = {};
};

// ConfigError without data.
SourcePtr open_split(const RecipeOptions& options, Split split);

// Throws as open_split(), and ConfigError where the data are for another recipe.
Splits open_splits(const std::string& recipe, const RecipeOptions& options);

// Decoded where the source holds encoded images, and then kept as RecipeOptions::open_cache says. An encoded image
// that is not `side` pixels high and wide is then a bad record.
struct RecipeImages {
  Dataset dataset;
  bool cached = false;
};
RecipeImages images_of(const SourcePtr& source, std::int64_t side, const RecipeOptions& options);

// RecipeOptions::global_batch, or what is usual.
std::int64_t batch_size(const RecipeOptions& options, std::int64_t usual);
// ConfigError where a batch is never full and the rest is dropped.
Dataset batched(const Dataset& data, const BatchOptions& batch, const RecipeOptions& options);

// How long to train, and how the data are read.
FitOptions fit_of(const RecipeOptions& options, int usual_epochs);

// For a loader that reads data once on the host, for the data's sake.
LoaderOptions host_input(const RecipeOptions& options);

}  // namespace headrace::tools
