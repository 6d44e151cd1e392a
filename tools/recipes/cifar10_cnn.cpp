// `cifar10-cnn`: five convolutions with batch norm and dropout. Every tenth training image validates.
#include "headrace/tools/pipelines/channel_statistics.h"
#include "headrace/tools/recipes/recipe_data.h"
#include "headrace/tools/recipes/recipes.h"
#include "headrace/train/nets.h"

namespace headrace::tools {

Recipe cifar10_cnn_recipe(const RecipeOptions& options) {
  static constexpr std::uint64_t kHeldOut = 10;
  const Splits splits = open_splits("cifar10-cnn", options);
  const Dataset all = images_of(splits.train, 32, options).dataset;
  const Dataset test = images_of(splits.test, 32, options).dataset;
  const Operations normal = normalize(kCifarMean, kCifarStd);
  const std::int64_t batch = batch_size(options, 512);
  const Dataset train = batched(all.without_shard(kHeldOut, 0).shuffle().map(pad_crop(32, 4) | flip() | normal),
                                {.global_batch = batch}, options);
  FitOptions fit = fit_of(options, 8);
  fit.validation = batched(all.shard(kHeldOut, 0).map(normal), {.global_batch = kEvaluationBatch}, options);
  return {.name = "cifar10-cnn",
          .global_batch = batch,
          .train = train,
          .fit = fit,
          .test = batched(test.map(normal), {.global_batch = kEvaluationBatch}, options),
          .net = cifar10_cnn,
          .optimizer = adam(Schedule::linear_decay({.peak = 4e-3F, .total_steps = steps_of_fit(train, fit)}))};
}

}  // namespace headrace::tools
