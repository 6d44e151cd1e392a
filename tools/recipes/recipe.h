// A recipe of `headrace train`: its data, net and training.
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
#include "headrace/train/nets.h"
#include "headrace/train/optimizers.h"

namespace headrace::tools {

// The user's options; the recipe decides those that are 0 or empty.
struct RecipeOptions {
  std::filesystem::path data = {};
  SourcePtr train = {};  // the train split of `data`, if it is already open
  LayoutOptions layout = {};
  ColumnOptions columns = {};
  bool apply_orientation = false;  // see DecodeOptions; ConfigError if nothing is decoded
  std::int64_t global_batch = 0;
  int epochs = 0;
  std::uint64_t steps_per_epoch = 0;
  int accumulate = 1;
  int prefetch = 2;
  // For recipes on images of any size; ConfigError with others.
  int image_size = 0;                     // the side of the net's input
  double validation_split = 0;            // the share of the train split that validates
  std::filesystem::path pretrained = {};  // weights to begin with, a .safetensors file
  bool gpu = false;                       // whether a GPU trains, for kAutoRecipe's choice
  // Called for each split; returns the cache of its samples before random operations, null for none.
  // Empty: a memory cache if they are decoded, else none.
  std::function<std::shared_ptr<SampleCache>()> open_cache = {};
  LoaderOptions input = {};  // of the training; loaders that only inspect the data use its threads and budgets
};

struct Recipe {
  std::string name;
  std::int64_t global_batch = 0;
  Dataset train;
  FitOptions fit;  // epochs and steps, validation, input: those of the optimizer's schedule
  Dataset test;
  Net net;
  Optimizer optimizer;
  Loss loss = sparse_categorical_crossentropy();
  std::vector<Metric> metrics = {accuracy()};
  bool tuned_plans = false;               // Kernels::tune_plans()
  std::vector<View> views = {};           // of the test images
  std::filesystem::path pretrained = {};  // weights to begin with: load_pretrained()
  std::vector<std::string> notes = {};    // for people, one line each
  // Fills caches before the clock of train_seconds starts.
  std::function<void()> load = {};
  // For values of the model that depend on data. Brings the data to the devices before the clock starts, and
  // returns a function that computes and writes the values, on the clock, and may be called again.
  std::function<std::function<void()>(Model& model)> initialise = {};
};

// The common part of the recipes `images-small` and `images-resnet18`, for labelled images of any size: random
// resized crops and mirror images in training, resized and cut from the middle in an evaluation.

struct ImageRecipe {
  std::string name;
  Node (*net)(Graph& graph, const ImageNetOptions& options) = nullptr;
  bool pretrained = false;  // takes RecipeOptions::pretrained
  int image_size = 224;     // of the net's input, unless the images are smaller
  std::int64_t global_batch = 64;
  int epochs = 1, pretrained_epochs = 1;
  float min_area = 0.08F;               // of a random crop
  float rate = 0, pretrained_rate = 0;  // peak, for `rate_batch` examples in a step
  std::int64_t rate_batch = 0;          // 0: the rate is for any batch
  Optimizer (*optimizer)(const Schedule& rate) = nullptr;
};

// Each is defined in its own file.
ImageRecipe images_small_settings();
ImageRecipe images_resnet18_settings();

// Throws ConfigError if the options or the data are not for the recipe.
Recipe make_image_recipe(const ImageRecipe& recipe, const RecipeOptions& options);

}  // namespace headrace::tools
