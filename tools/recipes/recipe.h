// A recipe of `headrace train`: which data, which net, how it is trained.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/sources.h"
#include "headrace/train/evaluator.h"
#include "headrace/train/graph.h"
#include "headrace/train/losses.h"
#include "headrace/train/metrics.h"
#include "headrace/train/model.h"
#include "headrace/train/optimizers.h"

namespace headrace::tools {

// What a user says; where it is 0 or empty the recipe decides.
struct RecipeOptions {
  std::filesystem::path data = {};
  SourcePtr train = {};  // the train split of `data`, where it is open already
  LayoutOptions layout = {};
  ColumnOptions columns = {};
  bool apply_orientation = false;  // as DecodeOptions has it; ConfigError where nothing is decoded
  std::int64_t global_batch = 0;
  int epochs = 0;
  std::uint64_t steps_per_epoch = 0;
  int accumulate = 1;
  int prefetch = 2;
  // Called for each split: where its samples are kept before anything random is done to them; null: nowhere.
  // Empty: in memory where they are decoded, else nowhere.
  std::function<std::shared_ptr<SampleCache>()> open_cache = {};
  LoaderOptions input = {};  // of the training; loaders that only look at the data have its threads and budgets
};

struct Recipe {
  std::string name;
  std::int64_t global_batch = 0;
  Dataset train;
  FitOptions fit;  // epochs and steps, validation, input: what the optimizer's schedule was made for
  Dataset test;
  Net net;
  Optimizer optimizer;
  Loss loss = sparse_categorical_crossentropy();
  std::vector<Metric> metrics = {accuracy()};
  bool tuned_plans = false;      // Kernels::tune_plans()
  std::vector<View> views = {};  // of the test images
  // Fills caches, before the clock of train_seconds starts.
  std::function<void()> load = {};
  // For values of the model that depend on data. Brings the data to the devices, before the clock starts; what it
  // returns computes the values and writes them, on the clock, and may be called again.
  std::function<std::function<void()>(Model& model)> initialise = {};
};

}  // namespace headrace::tools
