// `fashion-mnist`: two convolutions and a dense layer with dropout.
#include "headrace/tools/recipes/grey_images.h"
#include "headrace/tools/recipes/recipe_data.h"
#include "headrace/tools/recipes/recipes.h"
#include "headrace/train/nets.h"

namespace headrace::tools {

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
