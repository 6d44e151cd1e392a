// `mnist-mlp`: 784-256-256-10 with Adam.
#include "headrace/tools/recipes/grey_images.h"
#include "headrace/tools/recipes/recipe_data.h"
#include "headrace/tools/recipes/recipes.h"
#include "headrace/train/nets.h"

namespace headrace::tools {

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

}  // namespace headrace::tools
