// The recipes of `headrace train`: which data, which net, how it is trained.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "headrace/pipeline/dataset.h"
#include "headrace/tools/common_options.h"
#include "headrace/train/graph.h"
#include "headrace/train/optimizers.h"

namespace headrace::tools {

struct Recipe {
  std::string name;
  Dataset train;
  Dataset validation;  // held out of the training data
  Dataset test;
  Net net;
  Optimizer optimizer;
  int epochs = 1;
};

std::vector<std::string> recipe_names();

// ConfigError listing the recipes for an unknown name; the source's errors for data that cannot be opened or does
// not fit the recipe.
Recipe make_recipe(const std::string& name, const CommonOptions& options);

}  // namespace headrace::tools
