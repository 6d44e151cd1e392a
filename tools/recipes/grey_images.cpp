// The recipes on small grey images, and their data.
#include <cstdint>
#include <string>

#include "headrace/devices/base/error.h"
#include "headrace/tools/recipes/recipe.h"
#include "headrace/tools/recipes/recipe_data.h"
#include "headrace/tools/recipes/recipes.h"
#include "headrace/train/nets.h"

namespace headrace::tools {

namespace {

constexpr std::int64_t kGreySide = 28;

struct GreyImages {
  Dataset train, validation, test;
};

// Returns the stored images, u8: the net scales them to [0, 1]. The last `held_out` records of the train split are
// for validation. Throws ConfigError if there are no others.
GreyImages grey_images(const std::string& recipe, const RecipeOptions& options, std::uint64_t held_out,
                       std::int64_t batch) {
  const Splits splits = open_splits(recipe, options);
  const std::uint64_t records = splits.train->info().records;
  if (records <= held_out) {
    throw ConfigError("recipe " + recipe + " holds out " + std::to_string(held_out) + " images for validation; " +
                          splits.train->info().name + " has only " + std::to_string(records),
                      "give data with more images");
  }
  const Dataset all = images_of(splits.train, kGreySide, options).dataset;
  const Dataset test = images_of(splits.test, kGreySide, options).dataset;
  return {.train = batched(all.take(records - held_out).shuffle(), {.global_batch = batch}, options),
          .validation = batched(all.skip(records - held_out), {.global_batch = kEvaluationBatch}, options),
          .test = batched(test, {.global_batch = kEvaluationBatch}, options)};
}

}  // namespace

// `mnist-mlp`: 784-256-256-10 with Adam.
Recipe mnist_mlp_recipe(const RecipeOptions& options) {
  const std::int64_t batch = batch_size(options, 32);
  const GreyImages images = grey_images("mnist-mlp", options, 10'000, batch);
  FitOptions fit = fit_of(options, 2);
  fit.validation = images.validation;
  return {.name = "mnist-mlp",
          .global_batch = batch,
          .train = images.train,
          .fit = fit,
          .test = images.test,
          .net = mnist_mlp,
          .optimizer = adam(1e-3F)};
}

// `fashion-mnist`: two convolutions and a dense layer with dropout.
Recipe fashion_mnist_recipe(const RecipeOptions& options) {
  const std::int64_t batch = batch_size(options, 128);
  const GreyImages images = grey_images("fashion-mnist", options, 5'000, batch);
  FitOptions fit = fit_of(options, 4);
  fit.validation = images.validation;
  return {
      .name = "fashion-mnist",
      .global_batch = batch,
      .train = images.train,
      .fit = fit,
      .test = images.test,
      .net = fashion_cnn,
      .optimizer = adam(Schedule::linear_decay({.peak = 2e-3F, .total_steps = steps_of_fit(images.train, fit)}))};
}

}  // namespace headrace::tools
