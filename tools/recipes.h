// The recipes of `headrace train`: which data, which net, how it is trained.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "headrace/pipeline/dataset.h"
#include "headrace/tools/common_options.h"
#include "headrace/train/graph.h"
#include "headrace/train/losses.h"
#include "headrace/train/model.h"
#include "headrace/train/optimizers.h"
#include "headrace/train/views.h"

namespace headrace::tools {

struct Recipe {
  std::string name;
  Dataset train;
  std::optional<Dataset> validation = std::nullopt;  // held out of the training data
  Dataset test;
  Net net;
  Optimizer optimizer;
  int epochs = 1;
  std::uint64_t steps_per_epoch = 0;  // as FitOptions::steps_per_epoch
  Loss loss = sparse_categorical_crossentropy();
  std::vector<View> views = {};                       // of the test images
  std::function<void()> load = {};                    // fills caches, before the clock of train_seconds starts
  std::function<void(Model& model)> initialise = {};  // what depends on data; on the clock
};

std::vector<std::string> recipe_names();

// ConfigError listing the recipes for an unknown name; the source's errors for data that cannot be opened or does
// not fit the recipe.
Recipe make_recipe(const std::string& name, const CommonOptions& options);

}  // namespace headrace::tools
